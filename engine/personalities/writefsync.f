# Appends to one file and syncs it after so many pieces, until it was synced often enough.

set $dir=/tmp
set $iosize=8k
set $writeiters=1024
set $fsynccount=128

set mode quit firstdone

define file name=appended,path=$dir,size=0,prealloc

define process name=writer,instances=1
{
  thread name=writer,memsize=10m,instances=1
  {
    flowop appendfile name=append,filename=appended,iosize=$iosize,iters=$writeiters
    flowop fsync name=sync
    flowop finishoncount name=finish,value=$fsynccount,target=sync
  }
}
