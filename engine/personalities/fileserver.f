# A file server: many users create, write, append to, read, delete and look at files in a tree.

set $dir=/tmp
set $nfiles=10000
set $meandirwidth=20
set $meanfilesize=128k
set $nthreads=50
set $iosize=1m
set $meanappendsize=16k

# Some files are much longer than the others.
set $filesize=randvar(type=gamma,mean=$meanfilesize,gamma=1500)

define fileset name=shared,path=$dir,size=$filesize,entries=$nfiles,dirwidth=$meandirwidth,prealloc=80,paralloc

define process name=server,instances=1
{
  thread name=user,memsize=10m,instances=$nthreads
  {
    flowop createfile name=create,filesetname=shared,fd=1
    flowop writewholefile name=write,fd=1,srcfd=1,iosize=$iosize
    flowop closefile name=closewritten,fd=1
    flowop openfile name=opentoappend,filesetname=shared,fd=1
    flowop appendfilerand name=append,iosize=$meanappendsize,fd=1
    flowop closefile name=closeappended,fd=1
    flowop openfile name=opentoread,filesetname=shared,fd=1
    flowop readwholefile name=read,fd=1,iosize=$iosize
    flowop closefile name=closeread,fd=1
    flowop deletefile name=delete,filesetname=shared
    flowop statfile name=stat,filesetname=shared
  }
}
