# Appends to files, reads them back, deletes others, as a simple document store does.

set $dir=/tmp
set $nfiles=1000
set $meandirwidth=20
set $meanfilesize=16k
set $nthreads=1
set $iosize=1m
set $meanappendsize=16k

set mode quit firstdone

define fileset name=documents,path=$dir,size=$meanfilesize,entries=$nfiles,dirwidth=$meandirwidth,prealloc,paralloc
define fileset name=outdated,path=$dir,size=$meanfilesize,entries=$nfiles,dirwidth=$meandirwidth,prealloc,paralloc

define process name=store,instances=1
{
  thread name=store,memsize=10m,instances=$nthreads
  {
    flowop openfile name=opentoappend,filesetname=documents,fd=1
    flowop appendfilerand name=append,iosize=$meanappendsize,fd=1
    flowop closefile name=closeappended,fd=1
    flowop openfile name=opentoread,filesetname=documents,fd=1
    flowop readwholefile name=read,fd=1,iosize=$iosize
    flowop closefile name=closeread,fd=1
    flowop deletefile name=delete,filesetname=outdated
  }
}
