# A web proxy: a page is replaced, and five others are read, over and over.

set $dir=/tmp
set $nfiles=10000
set $meandirwidth=1000000
set $meanfilesize=16k
set $nthreads=100
set $iosize=1m
set $meanappendsize=16k
set $eventrate=0

eventgen rate=$eventrate

# Some pages are much longer than the others.
set $filesize=randvar(type=gamma,mean=$meanfilesize,gamma=1500)

define fileset name=pages,path=$dir,size=$filesize,entries=$nfiles,dirwidth=$meandirwidth,prealloc=80,paralloc

define flowop name=readpage
{
  flowop openfile name=open,filesetname=pages,fd=1
  flowop readwholefile name=read,fd=1,iosize=$iosize
  flowop closefile name=close,fd=1
}

define process name=proxy,instances=1
{
  thread name=client,memsize=10m,instances=$nthreads
  {
    flowop deletefile name=delete,filesetname=pages
    flowop createfile name=create,filesetname=pages,fd=1
    flowop appendfilerand name=append,iosize=$meanappendsize,fd=1
    flowop closefile name=close,fd=1
    flowop readpage name=page,iters=5
    flowop opslimit name=rate
  }
}
