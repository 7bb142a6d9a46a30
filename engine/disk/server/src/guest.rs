//! Access of guests to the disk: a virtio block device over a vhost-user socket, for User-Mode Linux and QEMU.
//!
//! Requests arrive as the guest's kernel sends them, many at once, including FLUSH. One thread handles the messages of
//! the guest. The thread that serves in drive time takes the guest's requests and answers them.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use virtio_queue::{DescriptorChain, Queue, QueueT};
use vm_memory::mmap::MmapRegion;
use vm_memory::{FileOffset, GuestAddress, GuestMemoryMmap, GuestRegionMmap};

use crate::device::{Device, Reply};
use crate::sys;
use crate::vhost_user::{self, Message, PROTOCOL_FEATURES, Received, Region, UNDERSTOOD};
use crate::virtio::{self, Asked, QUEUE_SIZE, Status};

type Chain = DescriptorChain<Arc<GuestMemoryMmap>>;

/// This bit is set in the numbers of guest requests. It is never set in those of the FUSE connection.
const MARK: u64 = 1 << 63;

/// Return whether the request with this number is from a guest.
pub(crate) fn asked(unique: u64) -> bool {
    unique & MARK != 0
}

/// The guest interface. It serves one guest at a time.
pub(crate) struct Guest {
    pub(crate) socket: PathBuf,
    serial: String,
    connected: Mutex<Connected>,
}

/// The settings of the connected guest.
struct Connected {
    memory: Option<Memory>,
    queue: Queue,
    kick: Option<Arc<OwnedFd>>,
    call: Option<OwnedFd>,
    back: Option<OwnedFd>,
    enabled: bool,
    /// Unanswered requests. Numbers are never reused, so a late answer finds no request.
    waiting: HashMap<u64, Chain>,
    /// Whether the queue may have requests for which no kick is to come, because not all were taken.
    more: bool,
    next: u64,
}

/// The guest's memory. `places` has the address in the front-end, the bytes and the guest address of each region.
struct Memory {
    mapped: Arc<GuestMemoryMmap>,
    places: Vec<(u64, u64, u64)>,
}

impl Guest {
    /// Offer the disk on a new socket. Guests are served one after another until the process ends.
    pub(crate) fn offer(device: &Arc<Device>, socket: &Path, serial: &str) -> io::Result<()> {
        let connected = Mutex::new(Connected::new(MARK)?);
        let guest = Arc::new(Self { socket: socket.to_owned(), serial: serial.to_owned(), connected });
        let listener = UnixListener::bind(socket)?; // first: an existing path belongs to another process
        if device.guest.set(Arc::clone(&guest)).is_err() {
            let _ = fs::remove_file(socket);
            return Err(io::Error::other("the disk is offered already"));
        }
        let device = Arc::clone(device);
        thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(stream) = stream else {
                    thread::sleep(Duration::from_millis(100)); // no file descriptor is free
                    continue;
                };
                if let Err(error) = guest.converse(&device, &stream) {
                    eprintln!("fslab-disk: the guest's connection ends: {error}");
                }
                let _ = guest.forget(&device);
            }
        });
        Ok(())
    }

    /// Return the descriptor that becomes readable when the guest sends requests; `None` if no guest is connected.
    pub(crate) fn kick(&self) -> Option<Arc<OwnedFd>> {
        let connected = self.connected();
        connected.kick.clone().filter(|_| connected.enabled)
    }

    /// Take the requests that the guest has sent. Returns false if there are none.
    pub(crate) fn take(&self, device: &Device) -> bool {
        let mut found = Vec::new();
        let mut connected = self.connected();
        let Some(kick) = connected.kick.clone().filter(|_| connected.enabled) else { return false };
        let kicked = sys::read(kick.as_fd(), &mut [0; 8]).is_ok(); // always: a kick that stays readable ends each wait
        if !kicked && !connected.more {
            return false; // no new request
        }
        let mut taken = 0;
        // At most one queue at a time, and in flight: a guest that goes on sending must not stop everything else.
        connected.more = loop {
            if taken == QUEUE_SIZE || connected.waiting.len() >= usize::from(QUEUE_SIZE) {
                break true;
            }
            let Some((chain, asked)) = connected.pop(device.size) else { break false };
            taken += 1;
            match asked {
                Ok(Asked::Io(io, data)) => found.push((connected.wait(chain), io, data)),
                Ok(Asked::Id) => connected.finish(&chain, Status::Ok, &virtio::identity(&self.serial)),
                Ok(Asked::Answer(status)) => connected.finish(&chain, status, &[]),
                Err(_) => connected.finish(&chain, Status::Failed, &[]),
            }
        };
        drop(connected);
        let mut core = device.core();
        for (unique, io, data) in found {
            core.submit(device, unique, io, &data);
        }
        taken > 0
    }

    /// Send a reply. It is dropped if the guest has disconnected.
    pub(crate) fn send(&self, device: &Device, reply: Reply, buffer: &mut [u8]) {
        let (status, data) = match reply {
            Reply::Data { offset, length, .. } => {
                let part = &mut buffer[..length as usize];
                match device.store.read(offset, part) {
                    Ok(()) => (Status::Ok, &*part),
                    Err(_) => (Status::Failed, &[][..]),
                }
            }
            Reply::Written { .. } | Reply::Done { .. } => (Status::Ok, &[][..]),
            Reply::Failed { .. } => (Status::Failed, &[][..]),
        };
        let mut connected = self.connected();
        if let Some(chain) = connected.waiting.remove(&reply.unique()) {
            connected.finish(&chain, status, data);
        }
    }

    fn connected(&self) -> MutexGuard<'_, Connected> {
        self.connected.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Drop the state of a guest that has disconnected.
    fn forget(&self, device: &Device) -> io::Result<()> {
        let mut connected = self.connected();
        *connected = Connected::new(connected.next)?;
        sys::notify(&device.wake)
    }

    /// Handle the messages of the front-end until it disconnects.
    fn converse(&self, device: &Device, stream: &UnixStream) -> io::Result<()> {
        while let Some(received) = vhost_user::receive(stream)? {
            self.answer(device, received, stream)?;
            sys::notify(&device.wake)?; // the serving thread must start or stop waiting for this guest's kick
        }
        Ok(())
    }

    fn answer(&self, device: &Device, mut received: Received, stream: &UnixStream) -> io::Result<()> {
        let mut connected = self.connected();
        match std::mem::replace(&mut received.message, Message::Nothing) {
            Message::GetFeatures => {
                let discards = !device.core().drive.writes_zeros();
                received.answer_number(stream, virtio::features(discards) | PROTOCOL_FEATURES)
            }
            Message::GetProtocolFeatures => received.answer_number(stream, UNDERSTOOD),
            Message::GetQueueNum => received.answer_number(stream, 1),
            Message::GetConfig(offset, size) => {
                let all = virtio::configuration(device.size);
                let part: Vec<u8> = (offset..offset + size).map(|at| *all.get(at).unwrap_or(&0)).collect();
                received.answer_configuration(stream, &part)
            }
            Message::GetVringBase(queue) => {
                let base = connected.queue.next_avail();
                connected.stop();
                received.answer_base(stream, queue, base.into())
            }
            message => {
                let done = connected.set(message);
                received.acknowledge(stream, done.is_ok())?;
                done
            }
        }
    }
}

impl Connected {
    fn new(next: u64) -> io::Result<Self> {
        Ok(Self {
            memory: None,
            queue: Queue::new(QUEUE_SIZE).map_err(io::Error::other)?,
            kick: None,
            call: None,
            back: None,
            enabled: false,
            waiting: HashMap::new(),
            more: false,
            next,
        })
    }

    /// Apply a setting of the only queue or of the memory.
    fn set(&mut self, message: Message) -> io::Result<()> {
        match message {
            // Without the protocol features, a queue is enabled from the start.
            Message::SetFeatures(features) => self.enabled = features & PROTOCOL_FEATURES == 0,
            Message::SetMemTable(regions) => self.memory = Some(Memory::map(regions)?),
            Message::SetVringNum(0, size) => {
                self.queue.set_size(u16::try_from(size).map_err(io::Error::other)?);
            }
            Message::SetVringAddr(0, addresses) => self.place(addresses)?,
            Message::SetVringBase(0, base) => {
                self.queue.set_next_avail(u16::try_from(base).map_err(io::Error::other)?);
            }
            Message::SetVringKick(0, file) => {
                if let Some(file) = &file {
                    sys::set_nonblocking(file.as_fd())?;
                }
                self.kick = file.map(Arc::new);
                self.queue.set_ready(self.kick.is_some());
            }
            Message::SetVringCall(0, file) => self.call = file,
            Message::SetVringEnable(0, enabled) => self.enabled = enabled,
            Message::SetBackendReqFd(file) => self.back = file,
            Message::Nothing => {}
            _ => return Err(io::Error::other("the guest asks for a second queue: this disk has one")),
        }
        Ok(())
    }

    fn place(&mut self, addresses: [u64; 3]) -> io::Result<()> {
        let memory =
            self.memory.as_ref().ok_or_else(|| io::Error::other("the guest has not shared its memory"))?;
        let [descriptors, used, available] = addresses.map(|address| memory.guest_address(address));
        let parts = |address: Option<u64>| {
            let address =
                address.ok_or_else(|| io::Error::other("the queue is outside the guest's memory"))?;
            #[allow(clippy::cast_possible_truncation)] // splits it into its two halves
            Ok::<_, io::Error>((Some(address as u32), Some((address >> 32) as u32)))
        };
        let (low, high) = parts(descriptors)?;
        self.queue.set_desc_table_address(low, high);
        let (low, high) = parts(available)?;
        self.queue.set_avail_ring_address(low, high);
        let (low, high) = parts(used)?;
        self.queue.set_used_ring_address(low, high);
        let index = self.queue.used_idx(&*memory.mapped, std::sync::atomic::Ordering::Acquire);
        self.queue.set_next_used(index.map_err(io::Error::other)?.0);
        Ok(())
    }

    fn stop(&mut self) {
        self.queue.set_ready(false);
        self.kick = None;
        self.call = None;
        self.waiting.clear();
        self.more = false;
    }

    /// Return the next chain and its request.
    fn pop(&mut self, size: u64) -> Option<(Chain, io::Result<Asked>)> {
        let memory = Arc::clone(&self.memory.as_ref()?.mapped);
        let chain = self.queue.pop_descriptor_chain(memory)?;
        let asked = virtio::asked(chain.clone(), chain.memory(), size);
        Some((chain, asked))
    }

    fn wait(&mut self, chain: Chain) -> u64 {
        self.next += 1;
        self.waiting.insert(self.next, chain);
        self.next
    }

    fn finish(&mut self, chain: &Chain, status: Status, data: &[u8]) {
        let written = virtio::answer(chain.clone(), chain.memory(), status, data).unwrap_or(0);
        if self.queue.add_used(chain.memory(), chain.head_index(), written).is_ok() {
            if let Some(call) = &self.call {
                let _ = sys::notify(call); // a guest that has disconnected needs no interrupt
            }
        }
    }
}

impl Memory {
    fn map(regions: Vec<Region>) -> io::Result<Self> {
        let places = regions.iter().map(|region| (region.user, region.bytes, region.guest)).collect();
        let mapped = regions.into_iter().map(|region| {
            let file = FileOffset::new(File::from(region.file), region.offset);
            let bytes = usize::try_from(region.bytes).map_err(io::Error::other)?;
            let mapping = MmapRegion::from_file(file, bytes).map_err(io::Error::other)?;
            GuestRegionMmap::new(mapping, GuestAddress(region.guest)).ok_or_else(|| {
                io::Error::other("a region of the guest's memory reaches beyond the last address")
            })
        });
        let mapped = GuestMemoryMmap::from_regions(mapped.collect::<io::Result<_>>()?);
        Ok(Self { mapped: Arc::new(mapped.map_err(io::Error::other)?), places })
    }

    /// Convert an address in the front-end to a guest address; `None` if no region contains it.
    fn guest_address(&self, user: u64) -> Option<u64> {
        let found = |&(start, bytes, guest): &(u64, u64, u64)| {
            user.checked_sub(start).filter(|offset| *offset < bytes).map(|offset| guest + offset)
        };
        self.places.iter().find_map(found)
    }
}
