# Makes empty directories in a tree until there are as many as asked for.

set $dir=/tmp
set $ndirs=10000
set $meandirwidth=100
set $nthreads=16

set mode quit alldone

define fileset name=made,path=$dir,size=0,leafdirs=$ndirs,dirwidth=$meandirwidth

define process name=maker,instances=1
{
  thread name=maker,memsize=1m,instances=$nthreads
  {
    flowop makedir name=make,filesetname=made
  }
}
