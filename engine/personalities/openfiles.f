# Opens and closes empty files of a tree, over and over.

set $dir=/tmp
set $nfiles=50000
set $meandirwidth=100
set $nthreads=16

define fileset name=opened,path=$dir,size=0,entries=$nfiles,dirwidth=$meandirwidth,prealloc

define process name=opener,instances=1
{
  thread name=opener,memsize=1m,instances=$nthreads
  {
    flowop openfile name=open,filesetname=opened,fd=1
    flowop closefile name=close,fd=1
  }
}
