# A video server: many viewers read films at a fixed rate, while one film at a time is replaced.

set $dir=/tmp
set $eventrate=96
set $filesize=10g
set $nthreads=48
set $numactivevids=32
set $numpassivevids=194
set $reuseit=false
set $readiosize=256k
set $writeiosize=1m
set $repintval=10

eventgen rate=$eventrate

define fileset name=shown,path=$dir,size=$filesize,entries=$numactivevids,dirwidth=4,prealloc,paralloc,reuse=$reuseit
define fileset name=stored,path=$dir,size=$filesize,entries=$numpassivevids,dirwidth=20,prealloc=50,paralloc,reuse=$reuseit

define process name=replacer,instances=1
{
  thread name=replacer,memsize=10m,instances=1
  {
    flowop deletefile name=remove,filesetname=stored
    flowop createfile name=create,filesetname=stored,fd=1
    flowop writewholefile name=write,iosize=$writeiosize,fd=1,srcfd=1
    flowop closefile name=close,fd=1
    flowop delay name=pause,value=$repintval
  }
}

define process name=viewers,instances=1
{
  thread name=viewer,memsize=10m,instances=$nthreads
  {
    flowop read name=view,filesetname=shown,iosize=$readiosize
    flowop bwlimit name=rate,target=view
  }
}
