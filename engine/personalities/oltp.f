# A database: many readers, some writers of pages, one writer of the log, each waiting for the others.

set $dir=/tmp
set $eventrate=0
set $iosize=2k
set $nshadows=200
set $ndbwriters=10
set $usermode=200000
set $filesize=10m
set $memperthread=1m
set $workingset=0
set $logfilesize=10m
set $nfiles=10
set $nlogfiles=1
set $directio=false

eventgen rate=$eventrate

define fileset name=datafiles,path=$dir,size=$filesize,entries=$nfiles,dirwidth=1024,prealloc=100,reuse
define fileset name=logfile,path=$dir,size=$logfilesize,entries=$nlogfiles,dirwidth=1024,prealloc=100,reuse

define process name=logwriter,instances=1
{
  thread name=logwriter,memsize=$memperthread
  {
    flowop aiowrite name=logwrite,filesetname=logfile,iosize=256k,random,directio=$directio,dsync
    flowop aiowait name=logwait
    flowop semblock name=logblock,value=3200,highwater=1000
  }
}

define process name=pagewriter,instances=$ndbwriters
{
  thread name=pagewriter,memsize=$memperthread
  {
    flowop aiowrite name=pagewrite,filesetname=datafiles,iosize=$iosize,workingset=$workingset,random,
           iters=100,opennext,directio=$directio,dsync
    flowop hog name=pagehog,value=10000
    flowop semblock name=pageblock,value=1000,highwater=2000
    flowop aiowait name=pagewait
  }
}

define process name=reader,instances=$nshadows
{
  thread name=reader,memsize=$memperthread
  {
    flowop read name=pageread,filesetname=datafiles,iosize=$iosize,workingset=$workingset,random,
           opennext,directio=$directio
    flowop hog name=readhog,value=$usermode
    flowop sempost name=postlog,value=1,target=logblock,blocking
    flowop sempost name=postpages,value=1,target=pageblock,blocking
    flowop eventlimit name=rate
  }
}
