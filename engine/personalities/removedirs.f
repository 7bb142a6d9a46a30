# Removes all empty directories of a tree.

set $dir=/tmp
set $ndirs=10000
set $meandirwidth=100
set $nthreads=16

set mode quit alldone

define fileset name=removed,path=$dir,size=0,leafdirs=$ndirs,dirwidth=$meandirwidth,prealloc

define process name=remover,instances=1
{
  thread name=remover,memsize=1m,instances=$nthreads
  {
    flowop removedir name=remove,filesetname=removed
  }
}
