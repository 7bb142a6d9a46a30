# Reads one large file from its start to its end, over and over.

set $dir=/tmp
set $filesize=5g
set $iosize=1m
set $nthreads=1
set $directio=false

define file name=large,path=$dir,size=$filesize,prealloc,reuse

define process name=streamread,instances=1
{
  thread name=streamread,memsize=10m,instances=$nthreads
  {
    flowop read name=read,filename=large,iosize=$iosize,directio=$directio
  }
}
