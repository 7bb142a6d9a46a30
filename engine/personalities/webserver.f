# A web server: ten pages are read for each line that is appended to one log.

set $dir=/tmp
set $nfiles=1000
set $meandirwidth=20
set $meanfilesize=16k
set $nthreads=100
set $iosize=1m
set $meanappendsize=16k

# Some pages are much longer than the others.
set $filesize=randvar(type=gamma,mean=$meanfilesize,gamma=1500)

define fileset name=pages,path=$dir,size=$filesize,entries=$nfiles,dirwidth=$meandirwidth,prealloc=100,readonly
define fileset name=log,path=$dir,size=$filesize,entries=1,dirwidth=$meandirwidth,prealloc

define flowop name=readpage
{
  flowop openfile name=open,filesetname=pages,fd=1
  flowop readwholefile name=read,fd=1,iosize=$iosize
  flowop closefile name=close,fd=1
}

define process name=server,instances=1
{
  thread name=client,memsize=10m,instances=$nthreads
  {
    flowop readpage name=page,iters=10
    flowop appendfilerand name=appendlog,filesetname=log,iosize=$meanappendsize,fd=2
  }
}
