# Lists the directories of a deep tree, over and over.

set $dir=/tmp
set $nfiles=50000
set $meandirwidth=5
set $nthreads=16

define fileset name=listed,path=$dir,size=0,entries=$nfiles,dirwidth=$meandirwidth,prealloc

define process name=lister,instances=1
{
  thread name=lister,memsize=1m,instances=$nthreads
  {
    flowop listdir name=list,filesetname=listed
  }
}
