# Copies a directory tree, file by file, until all is copied.

set $dir=/tmp
set $nfiles=1000
set $meandirwidth=20
set $meanfilesize=16k
set $iosize=1m
set $nthreads=1

set mode quit firstdone

define fileset name=source,path=$dir,size=$meanfilesize,entries=$nfiles,dirwidth=$meandirwidth,prealloc=100,paralloc
define fileset name=target,path=$dir,size=$meanfilesize,entries=$nfiles,dirwidth=$meandirwidth

define process name=copier,instances=1
{
  thread name=copier,memsize=10m,instances=$nthreads
  {
    flowop openfile name=opensource,filesetname=source,fd=1
    flowop readwholefile name=readsource,fd=1,iosize=$iosize
    flowop createfile name=createtarget,filesetname=target,fd=2
    flowop writewholefile name=writetarget,fd=2,srcfd=1,iosize=$iosize
    flowop closefile name=closesource,fd=1
    flowop closefile name=closetarget,fd=2
  }
}
