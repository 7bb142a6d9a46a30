# Asks for the attributes of the files of a tree, over and over.

set $dir=/tmp
set $nfiles=10000
set $meandirwidth=20
set $meanfilesize=0
set $nthreads=20

define fileset name=looked,path=$dir,size=$meanfilesize,entries=$nfiles,dirwidth=$meandirwidth,prealloc

define process name=looker,instances=1
{
  thread name=looker,memsize=1m,instances=$nthreads
  {
    flowop statfile name=stat,filesetname=looked
  }
}
