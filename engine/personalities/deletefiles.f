# Deletes all files of a directory tree.

set $dir=/tmp
set $nfiles=50000
set $meandirwidth=100
set $meanfilesize=16k
set $nthreads=16

set mode quit alldone

define fileset name=deleted,path=$dir,size=$meanfilesize,entries=$nfiles,dirwidth=$meandirwidth,prealloc=100,paralloc

define process name=deleter,instances=1
{
  thread name=deleter,memsize=1m,instances=$nthreads
  {
    flowop deletefile name=delete,filesetname=deleted
  }
}
