/* The system calls of `fslab-engine small-files`, and nothing else: create, stat, read and delete N
 * files of SIZE bytes in one directory per thread. No histogram, no clock, no check but for failure.
 *
 *   cc -O2 -pthread bare.c -o bare && ./bare DIR FILES SIZE THREADS [DIRECTORIES]
 *
 * Prints one line per operation: its name and the seconds from the barrier to the last thread. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { MAX_THREADS = 64 };

static int directories[MAX_THREADS];
static long files, threads;
static int dirs;
static size_t size;
static pthread_barrier_t barrier;
static double started[MAX_THREADS], finished[MAX_THREADS];
static char *data;

static void die(const char *what)
{
	fprintf(stderr, "bare: %s: %s\n", what, strerror(errno));
	exit(1);
}

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static void name_of(long number, char name[12])
{
	memcpy(name, "f0000000000", 12);
	for (int digit = 10; number; digit--, number /= 10)
		name[digit] = '0' + number % 10;
}

static void create(int directory, const char *name, char *buffer)
{
	int file = openat(directory, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
	(void)buffer;
	if (file < 0 || write(file, data, size) != (ssize_t)size || close(file))
		die("create");
}

static void stat_it(int directory, const char *name, char *buffer)
{
	struct stat about;
	(void)buffer;
	if (fstatat(directory, name, &about, AT_SYMLINK_NOFOLLOW))
		die("stat");
}

static void read_it(int directory, const char *name, char *buffer)
{
	int file = openat(directory, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (file < 0 || read(file, buffer, size + 1) != (ssize_t)size || close(file))
		die("read");
}

static void delete(int directory, const char *name, char *buffer)
{
	(void)buffer;
	if (unlinkat(directory, name, 0))
		die("delete");
}

static const struct {
	const char *name;
	void (*action)(int, const char *, char *);
} operations[] = { { "create", create }, { "stat", stat_it }, { "read", read_it }, { "delete", delete } };
static int operation;

static void *work(void *argument)
{
	long thread = (long)argument;
	long first = files * thread / threads, last = files * (thread + 1) / threads;
	int directory = directories[dirs == 1 ? 0 : thread];
	char name[12], *buffer = malloc(size + 1);
	pthread_barrier_wait(&barrier);
	started[thread] = now();
	for (long file = first; file < last; file++) {
		name_of(file, name);
		operations[operation].action(directory, name, buffer);
	}
	finished[thread] = now();
	free(buffer);
	return NULL;
}

int main(int count, char **arguments)
{
	char path[4096];
	if (count < 5) {
		fprintf(stderr, "usage: bare DIR FILES SIZE THREADS [DIRECTORIES]\n");
		return 2;
	}
	files = atol(arguments[2]), size = strtoul(arguments[3], NULL, 10), threads = atol(arguments[4]);
	dirs = count > 5 ? atoi(arguments[5]) : 1;
	data = malloc(size);
	srandom(1);
	for (size_t byte = 0; byte < size; byte++)
		data[byte] = random();
	for (int number = 0; number < dirs; number++) {
		snprintf(path, sizeof path, "%s/bare%d", arguments[1], number);
		if (mkdir(path, 0777) || (directories[number] = open(path, O_RDONLY | O_DIRECTORY)) < 0)
			die(path);
	}
	for (operation = 0; operation < 4; operation++) {
		pthread_t workers[MAX_THREADS];
		double start = 1e300, end = 0;
		pthread_barrier_init(&barrier, NULL, threads);
		for (long thread = 0; thread < threads; thread++)
			pthread_create(&workers[thread], NULL, work, (void *)thread);
		for (long thread = 0; thread < threads; thread++) {
			pthread_join(workers[thread], NULL);
			start = started[thread] < start ? started[thread] : start;
			end = finished[thread] > end ? finished[thread] : end;
		}
		printf("%s %.9f\n", operations[operation].name, end - start);
	}
	for (int number = 0; number < dirs; number++) {
		snprintf(path, sizeof path, "%s/bare%d", arguments[1], number);
		rmdir(path);
	}
	return 0;
}
