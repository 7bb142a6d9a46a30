//! Execution of commands: reads of the flash, writes to the buffer, programs when enough pages are gathered.

use crate::drive::{Cache, Op, Request};
use crate::ssd::drive::{Ssd, nanos, transfer};
use crate::ssd::flash::Program;
use crate::{Nanos, PAGE, PAGE_SECTORS, SECTOR};

impl Ssd {
    pub(super) fn take(&mut self, request: &Request, arrived: Nanos) -> bool {
        let command = nanos(self.profile.write_command_us);
        match request.op {
            Op::Read => self.read(request, arrived),
            Op::Write => return self.write(request, arrived),
            Op::Flush if self.cache == Cache::Protected => self.finish(request.id, arrived + command),
            Op::Flush => {
                self.dispatch(arrived);
                if self.used == 0 {
                    self.finish(request.id, arrived + command);
                } else {
                    self.flush = Some(request.id);
                }
            }
            Op::Discard => {
                self.ftl.trim(request.sector.div_ceil(PAGE_SECTORS)..request.end() / PAGE_SECTORS);
                if self.cache != Cache::Volatile {
                    self.persisted(request.sector, request.sectors, request.id);
                }
                self.finish(request.id, arrived + command);
            }
        }
        true
    }

    pub(super) fn read(&mut self, request: &Request, arrived: Nanos) {
        let begin = self.start(false, arrived) + nanos(self.profile.read_command_us);
        let per_page = u32::try_from(self.profile.flash_page / PAGE as u64).unwrap_or(1);
        let (mut latest, mut sensed) = (begin, None);
        for page in request.sector / PAGE_SECTORS..request.end().div_ceil(PAGE_SECTORS) {
            if self.buffered.contains_key(&page) {
                continue;
            }
            let Some(place) = self.ftl.lookup(page) else { continue };
            let again = sensed.replace(place / per_page) == Some(place / per_page);
            let sense = if again { 0 } else { nanos(self.profile.read_us) };
            let through = transfer(PAGE as u64, self.profile.channel_mb_s);
            let suspend = nanos(self.profile.suspend_us);
            latest = latest.max(self.flash.read(self.ftl.die(place), begin, sense, through, suspend));
        }
        self.bus[0] =
            self.bus[0].max(latest) + transfer(request.sectors * SECTOR, self.profile.bus_read_mb_s);
        self.finish(request.id, self.bus[0]);
    }

    pub(super) fn write(&mut self, request: &Request, arrived: Nanos) -> bool {
        let pages = request.sector / PAGE_SECTORS..request.end().div_ceil(PAGE_SECTORS);
        let count = usize::try_from(pages.end - pages.start).unwrap_or(0);
        if self.used > 0 && self.used + count > self.buffer_pages {
            if self.used == self.open.len() {
                // No program is under way that would make room, and no write comes that would fill the unit.
                self.dispatch(arrived);
            }
            return false;
        }
        let start = self.start(true, arrived);
        self.bus[1] =
            self.bus[1].max(start) + transfer(request.sectors * SECTOR, self.profile.bus_write_mb_s);
        let there = self.bus[1];
        for page in pages {
            *self.buffered.entry(page).or_default() += 1;
            self.used += 1;
            self.open.push((page, request.id));
            if self.open.len() == self.unit() {
                self.dispatch(there);
            }
        }
        if self.cache == Cache::None {
            self.dispatch(there);
            self.through.insert(request.id, count as u64);
            return true;
        }
        if self.cache == Cache::Protected {
            self.persisted(request.sector, request.sectors, request.id);
        }
        self.finish(request.id, there + nanos(self.profile.write_command_us));
        true
    }

    /// Send the gathered pages to a die, which can program them from `ready` on.
    pub(super) fn dispatch(&mut self, ready: Nanos) {
        if self.open.is_empty() {
            return;
        }
        let die = self.next_die();
        self.last_die = die;
        let pages = std::mem::take(&mut self.open);
        let slc = self.slc.0 + pages.len() as u64 <= self.slc.1;
        let mut time = nanos(if slc { self.profile.slc_program_us } else { self.profile.program_us });
        if slc {
            self.slc.0 += pages.len() as u64;
        }
        for (page, _) in &pages {
            let cost = self.ftl.write(*page, die);
            let copy = nanos(self.profile.read_us / 4.0 + self.profile.program_us / self.unit() as f64);
            let share = f64::from(self.ftl.block_pages()) * PAGE as f64
                / (self.profile.block as f64 * f64::from(self.profile.planes));
            let erase = nanos(self.profile.erase_us * share.min(1.0));
            let debt = &mut self.debts[die as usize];
            debt.time += u64::from(cost.copies) * copy + u64::from(cost.erases) * erase;
            debt.pages += u64::from(cost.freed);
            time += debt.pay();
        }
        self.flash.program(die, Program { pages, ready, time });
    }
}
