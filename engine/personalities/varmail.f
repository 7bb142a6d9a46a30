# A mail server with one file for each mail, all in one directory: create, append, fsync, read, delete.

set $dir=/tmp
set $nfiles=1000
set $meandirwidth=1000000
set $meanfilesize=16k
set $nthreads=16
set $iosize=1m
set $meanappendsize=16k

# Some mails are much longer than the others.
set $filesize=randvar(type=gamma,mean=$meanfilesize,gamma=1500)

define fileset name=mails,path=$dir,size=$filesize,entries=$nfiles,dirwidth=$meandirwidth,prealloc=80

define process name=server,instances=1
{
  thread name=user,memsize=10m,instances=$nthreads
  {
    flowop deletefile name=delete,filesetname=mails
    flowop createfile name=create,filesetname=mails,fd=1
    flowop appendfilerand name=appendnew,iosize=$meanappendsize,fd=1
    flowop fsync name=fsyncnew,fd=1
    flowop closefile name=closenew,fd=1
    flowop openfile name=opentoreply,filesetname=mails,fd=1
    flowop readwholefile name=readtoreply,fd=1,iosize=$iosize
    flowop appendfilerand name=appendreply,iosize=$meanappendsize,fd=1
    flowop fsync name=fsyncreply,fd=1
    flowop closefile name=closereply,fd=1
    flowop openfile name=opentoread,filesetname=mails,fd=1
    flowop readwholefile name=read,fd=1,iosize=$iosize
    flowop closefile name=closeread,fd=1
  }
}
