/* Stands between User-Mode Linux and ptrace(2): see _xstate.py for why.
 *
 * Where UML asks for the extended state with too small a buffer it gets the beginning; where it sets one, the
 * rest is filled with the initial state of the registers that it does not know. */
/* No header of the C library's, so that a compiler alone will do: these are ABI. */
#include <stdarg.h>

#define RTLD_NEXT ((void *)-1l)
#define PTRACE_GETREGSET 0x4204
#define PTRACE_SETREGSET 0x4205
#define memcpy __builtin_memcpy
#define memset __builtin_memset

struct iovec {
	void *iov_base;
	unsigned long iov_len;
};

void *dlsym(void *, const char *);

#define NT_X86_XSTATE 0x202
#define XSTATE_BV 512 /* Intel SDM vol. 1, 13.4.2: which components are not in their initial state */
#define KNOWN 0x2ff   /* x87, SSE, AVX, MPX, AVX-512 and PKRU: all within 2696 bytes */

static _Alignas(64) unsigned char whole[1 << 16];

long ptrace(int request, ...)
{
	static long (*real)(int, ...);
	static unsigned long size;
	va_list rest;

	va_start(rest, request);
	void *pid = va_arg(rest, void *), *address = va_arg(rest, void *), *data = va_arg(rest, void *);
	va_end(rest);
	if (!real)
		real = (long (*)(int, ...))dlsym(RTLD_NEXT, "ptrace");
	if ((request != PTRACE_GETREGSET && request != PTRACE_SETREGSET) || address != (void *)NT_X86_XSTATE)
		return real(request, pid, address, data);

	struct iovec *asked = data, all = {whole, sizeof whole};
	if (request == PTRACE_GETREGSET || !size) {
		if (real(PTRACE_GETREGSET, pid, address, &all))
			return -1;
		size = all.iov_len;
	}
	if (asked->iov_len > size)
		asked->iov_len = size;
	if (request == PTRACE_GETREGSET) {
		memcpy(asked->iov_base, whole, asked->iov_len);
		return 0;
	}
	memset(whole, 0, size);
	memcpy(whole, asked->iov_base, asked->iov_len);
	if (asked->iov_len < size)
		*(unsigned long *)(whole + XSTATE_BV) &= KNOWN;
	all.iov_len = size;
	return real(PTRACE_SETREGSET, pid, address, &all);
}
