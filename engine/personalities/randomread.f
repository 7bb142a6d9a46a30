# Reads pieces of one large file at random.

set $dir=/tmp
set $filesize=5g
set $iosize=8k
set $nthreads=1
set $workingset=0
set $directio=false

define file name=large,path=$dir,size=$filesize,prealloc,reuse

define process name=randomread,instances=1
{
  thread name=randomread,memsize=5m,instances=$nthreads
  {
    flowop read name=read,filename=large,iosize=$iosize,random,workingset=$workingset,directio=$directio
  }
}
