# Creates files in a directory tree until there are as many as asked for.

set $dir=/tmp
set $nfiles=50000
set $meandirwidth=100
set $meanfilesize=16k
set $iosize=1m
set $nthreads=16

set mode quit alldone

define fileset name=created,path=$dir,size=$meanfilesize,entries=$nfiles,dirwidth=$meandirwidth

define process name=creator,instances=1
{
  thread name=creator,memsize=10m,instances=$nthreads
  {
    flowop createfile name=create,filesetname=created,fd=1
    flowop writewholefile name=write,fd=1,iosize=$iosize
    flowop closefile name=close,fd=1
  }
}
