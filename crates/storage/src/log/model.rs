//! All interleavings of a few servers at one bucket. Each of them may stop for good after any step (it is never scheduled again),
//! or be slow. A request that was sent may arrive at any time, also a second time.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use super::protocol::{Answer, Append, Position, Takeover, Trim};

/// The most servers of a world.
const SERVERS: usize = 3;

/// How many groups each server writes.
const GROUPS: usize = 2;

/// All uploads that there can be.
const UPLOADS: usize = SERVERS * GROUPS;

/// One more than the last epoch that there can be.
const EPOCHS: usize = SERVERS + 2;

/// What the servers of a world do.
#[derive(Debug, Clone, Copy)]
struct Scenario {
    servers: usize,
    /// Each server makes any change that it can make, requests arrive twice, and a claim may get no answer. Otherwise each begins
    /// with an upload, and then the first deletes, the second uses, and the third uploads.
    is_free: bool,
    mistake: Mistake,
}

/// A mistake that is planted into the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mistake {
    None,
    /// The stamp is not read after a group.
    NoCheck,
    /// The stamp is read before a group is written, and not afterwards.
    CheckBeforePut,
    /// The stamp is not read between a copy and the removal of its groups.
    UncheckedTrim,
    /// Groups are removed before the copy is written.
    TrimBeforeCopy,
    /// What is there is read before the epoch is claimed.
    ReadBeforeClaim,
    /// After a group without an answer the next one gets the next number.
    NumberLeftOut,
    /// After a group without an answer the next one gets the same number.
    NumberUsedTwice,
    /// Bytes are removed before the log has the deletion.
    RemoveBeforeLog,
}

/// A group of one change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Change {
    /// An upload is acknowledged.
    Uploaded(usize),
    /// The first download of an upload is recorded.
    Used(usize),
    /// It is decided to delete an upload, because it was not used.
    Deleted(usize),
}

/// What is known of all uploads: one bit for each change.
type Known = u32;

/// The bits of all deletions.
const DELETIONS: Known = ((1 << UPLOADS) - 1) << (2 * UPLOADS);

impl Change {
    fn bit(self) -> Known {
        match self {
            Self::Uploaded(upload) => 1 << upload,
            Self::Used(upload) => 1 << (UPLOADS + upload),
            Self::Deleted(upload) => 1 << (2 * UPLOADS + upload),
        }
    }
}

#[derive(Debug, Clone, Copy, Hash)]
struct Server {
    takeover: Takeover,
    append: Append,
    trim: Trim,
    /// What its ledger has.
    known: Known,
    /// The change of the group that is under way.
    pending: Option<Change>,
    /// How many groups it has begun.
    begun: usize,
    /// The stamp before the group, for a planted mistake.
    early: u64,
}

/// What there is at each place of the log.
type Places<T> = [[Option<T>; GROUPS + 1]; EPOCHS];

#[derive(Debug, Clone, Copy, Hash)]
struct World {
    stamp: u64,
    copies: Places<Known>,
    log: Places<Change>,
    /// Groups that were sent, and may still arrive. Only a planted mistake sends two to one place.
    sent: [Places<Change>; 2],
    acknowledged: Known,
    /// The deletions whose bytes are removed. A server removes them as soon as it may, because nothing gets worse later.
    removed: Known,
    servers: [Server; SERVERS],
}

/// The indexes of a place.
fn of(at: Position) -> (usize, usize) {
    (usize::try_from(at.epoch).unwrap(), usize::try_from(at.number).unwrap())
}

fn get<T: Copy>(places: &Places<T>, at: Position) -> Option<T> {
    let (epoch, number) = of(at);
    places.get(epoch)?.get(number).copied().flatten()
}

fn put<T>(places: &mut Places<T>, at: Position, content: T) {
    let (epoch, number) = of(at);
    places[epoch][number] = Some(content);
}

impl World {
    fn new() -> Self {
        let server = Server {
            takeover: Takeover::Look,
            append: Append::Idle { last: Position::start(0) },
            trim: Trim::Done,
            known: 0,
            pending: None,
            begun: 0,
            early: 0,
        };
        Self {
            stamp: 0,
            copies: Places::default(),
            log: Places::default(),
            sent: [Places::default(); 2],
            acknowledged: 0,
            removed: 0,
            servers: [server; SERVERS],
        }
    }

    /// Whether a promise is broken: the server that has the epoch does not know what was acknowledged, or that bytes are gone;
    /// or what is recorded as used was deleted as unused.
    fn is_broken(&self) -> bool {
        let is_ignorant = |server: &Server| {
            server.takeover == Takeover::Serve { epoch: self.stamp }
                && (self.acknowledged | self.removed) & !server.known != 0
        };
        (self.acknowledged << UPLOADS) & self.removed & DELETIONS != 0 || self.servers.iter().any(is_ignorant)
    }

    /// Calls `found` with each world that one step leads to.
    fn step(&self, scenario: Scenario, found: &mut impl FnMut(Self)) {
        self.arrive(scenario, found);
        for index in 0..scenario.servers {
            let Server { takeover, append, trim, .. } = self.servers[index];
            match takeover {
                Takeover::Lost => {}
                Takeover::Serve { .. } => {
                    if scenario.is_free || trim == Trim::Done {
                        self.append(index, scenario, found);
                    }
                    if scenario.is_free || matches!(append, Append::Idle { .. }) {
                        self.trim(index, scenario.mistake, found);
                    }
                }
                _ => self.take_over(index, scenario, found),
            }
        }
    }

    /// Groups arrive in any order.
    fn arrive(&self, scenario: Scenario, found: &mut impl FnMut(Self)) {
        for attempt in 0..2 {
            for epoch in 1..EPOCHS {
                for number in 1..=GROUPS {
                    let Some(change) = self.sent[attempt][epoch][number] else { continue };
                    if self.log[epoch][number] == Some(change) {
                        continue;
                    }
                    let mut world = *self;
                    world.log[epoch][number] = Some(change);
                    if !scenario.is_free {
                        world.sent[attempt][epoch][number] = None;
                    }
                    found(world);
                }
            }
        }
    }

    fn newest_copy(&self, below: u64) -> Option<(Position, Known)> {
        let places = (0..below)
            .rev()
            .flat_map(|epoch| (0..=GROUPS as u64).rev().map(move |number| Position { epoch, number }));
        places.into_iter().find_map(|at| Some((at, get(&self.copies, at)?)))
    }

    fn take_over(&self, index: usize, scenario: Scenario, found: &mut impl FnMut(Self)) {
        let mut world = *self;
        let server = &mut world.servers[index];
        let is_early = scenario.mistake == Mistake::ReadBeforeClaim;
        let answer = match server.takeover {
            Takeover::Look => {
                if is_early {
                    server.known = self.read(self.stamp + 1);
                }
                Answer::Stamp(self.stamp)
            }
            Takeover::Claim { seen } if self.stamp == seen => {
                world.stamp = seen + 1;
                // One claim more than there are servers.
                if scenario.is_free && seen < 1 {
                    let takeover = server.takeover.answered(Answer::Unknown);
                    found(Self { stamp: seen + 1, ..self.with(index, |server| server.takeover = takeover) });
                }
                Answer::Replaced(true)
            }
            Takeover::Claim { .. } => Answer::Replaced(false),
            Takeover::Find { .. } if is_early => Answer::Newest(None),
            Takeover::Find { epoch } => {
                let newest = self.newest_copy(epoch);
                server.known = newest.map_or(0, |(_, copied)| copied);
                Answer::Newest(newest.map(|(at, _)| at))
            }
            Takeover::Read { next, .. } => {
                let group = get(&self.log, next);
                server.known |= group.map_or(0, Change::bit);
                Answer::Group(group.is_some())
            }
            Takeover::Write { epoch } => {
                put(&mut world.copies, Position::start(epoch), server.known);
                Answer::Done
            }
            Takeover::Confirm { epoch } => {
                server.append = Append::Idle { last: Position::start(epoch) };
                Answer::Stamp(self.stamp)
            }
            Takeover::Serve { .. } | Takeover::Lost => return,
        };
        server.takeover = server.takeover.answered(answer);
        if matches!(server.takeover, Takeover::Serve { .. }) {
            world.removed |= server.known & DELETIONS;
        }
        found(world);
    }

    /// All that a server of this epoch would read, in one step.
    fn read(&self, epoch: u64) -> Known {
        let Some((at, copied)) = self.newest_copy(epoch) else { return 0 };
        let groups = std::iter::successors(Some(at.next()), |at| Some(at.next()));
        groups.map_while(|at| get(&self.log, at)).fold(copied, |known, change| known | change.bit())
    }

    fn append(&self, index: usize, scenario: Scenario, found: &mut impl FnMut(Self)) {
        let Server { append, pending, begun, early, .. } = self.servers[index];
        match (append, pending) {
            (Append::Idle { .. }, _) if begun < GROUPS => {
                self.changes(index, scenario)
                    .for_each(|change| found(self.begin(index, change, scenario.mistake)));
            }
            (Append::Put(at), Some(change)) => {
                if get(&self.log, at) == Some(change) {
                    found(self.with(index, |server| server.append = append.answered(Answer::Done)));
                }
                let last = match scenario.mistake {
                    Mistake::NumberLeftOut => at,
                    Mistake::NumberUsedTwice => Position { number: at.number - 1, ..at },
                    _ => return,
                };
                found(self.with(index, |server| {
                    server.append = Append::Idle { last };
                    server.pending = None;
                }));
            }
            (Append::Check(at), Some(change)) => {
                let seen = match scenario.mistake {
                    Mistake::NoCheck => at.epoch,
                    Mistake::CheckBeforePut => early,
                    _ => self.stamp,
                };
                let append = append.answered(Answer::Stamp(seen));
                let mut world = self.with(index, |server| {
                    server.append = append;
                    server.pending = None;
                });
                if append != Append::Ended {
                    world.servers[index].known |= change.bit();
                    world.acknowledged |= change.bit();
                    world.removed |= change.bit() & DELETIONS;
                }
                found(world);
            }
            _ => {}
        }
    }

    /// A group of this change is sent.
    fn begin(&self, index: usize, change: Change, mistake: Mistake) -> Self {
        let mut world = self.with(index, |server| {
            server.append = server.append.begin();
            server.pending = Some(change);
            server.begun += 1;
            server.early = if mistake == Mistake::CheckBeforePut { self.stamp } else { 0 };
        });
        if let Append::Put(at) = world.servers[index].append {
            let is_second = get(&self.sent[0], at).is_some();
            put(&mut world.sent[usize::from(is_second)], at, change);
        }
        if mistake == Mistake::RemoveBeforeLog {
            world.removed |= change.bit() & DELETIONS;
        }
        world
    }

    /// The changes that a server can make next.
    fn changes(&self, index: usize, scenario: Scenario) -> impl Iterator<Item = Change> {
        let Server { known, begun, .. } = self.servers[index];
        let knows = move |change: Change| known & change.bit() != 0;
        // Uploads are alike, so one of them is enough.
        let unused = (0..UPLOADS).find(|upload| {
            knows(Change::Uploaded(*upload))
                && !knows(Change::Used(*upload))
                && !knows(Change::Deleted(*upload))
        });
        let upload = Change::Uploaded(index * GROUPS + begun);
        let (used, deleted) = (unused.map(Change::Used), unused.map(Change::Deleted));
        let changes = match (scenario.is_free, begun, index) {
            (true, ..) => [Some(upload), used, deleted],
            (false, 1, 0) => [deleted.or(Some(upload)), None, None],
            (false, 1, 1) => [used.or(Some(upload)), None, None],
            (false, ..) => [Some(upload), None, None],
        };
        changes.into_iter().flatten()
    }

    fn trim(&self, index: usize, mistake: Mistake, found: &mut impl FnMut(Self)) {
        let Server { append, trim, known, .. } = self.servers[index];
        let mut world = *self;
        let is_early = mistake == Mistake::TrimBeforeCopy;
        let answer = match trim {
            Trim::Done => {
                // A copy has what was committed. The group behind it may be under way.
                let last = match append {
                    Append::Idle { last } => last,
                    Append::Put(at) | Append::Check(at) => Position { number: at.number - 1, ..at },
                    Append::Ended => return,
                };
                if last.number > 0 && get(&self.copies, last).is_none() {
                    found(self.with(index, |server| server.trim = Trim::Copy(last)));
                }
                return;
            }
            Trim::Check(at) if mistake == Mistake::UncheckedTrim => Answer::Stamp(at.epoch),
            Trim::Check(_) => Answer::Stamp(self.stamp),
            Trim::Copy(at) | Trim::Remove(at) => {
                if matches!(trim, Trim::Copy(_)) == is_early {
                    world.remove_up_to(at);
                } else {
                    put(&mut world.copies, at, known);
                }
                Answer::Done
            }
            Trim::Ended => return,
        };
        world.servers[index].trim = trim.answered(answer);
        found(world);
    }

    fn remove_up_to(&mut self, last: Position) {
        for epoch in 0..EPOCHS {
            for number in 0..=GROUPS {
                if (epoch, number) <= of(last) {
                    self.log[epoch][number] = None;
                }
                if (epoch, number) < of(last) {
                    self.copies[epoch][number] = None;
                }
            }
        }
    }

    fn with(&self, index: usize, change: impl FnOnce(&mut Server)) -> Self {
        let mut world = *self;
        change(&mut world.servers[index]);
        world
    }
}

/// How the search ended.
#[derive(Debug, PartialEq, Eq)]
enum Found {
    /// A promise is broken after so many steps.
    Broken(usize),
    /// No promise is broken in so many worlds.
    Kept(usize),
}

fn explore(scenario: Scenario) -> Found {
    let hash = |world: &World| {
        let mut hasher = DefaultHasher::new();
        world.hash(&mut hasher);
        hasher.finish()
    };
    let mut frontier = vec![World::new()];
    let mut seen = HashSet::from([hash(&frontier[0])]);
    let mut steps = 0;
    while !frontier.is_empty() {
        if frontier.iter().any(World::is_broken) {
            return Found::Broken(steps);
        }
        let mut next = Vec::new();
        for world in &frontier {
            world.step(scenario, &mut |world| {
                if seen.insert(hash(&world)) {
                    next.push(world);
                }
            });
        }
        frontier = next;
        steps += 1;
    }
    Found::Kept(seen.len())
}

// Invariant: of several servers at one bucket one writes, and one that was replaced acknowledges nothing more.
#[test]
fn three_servers_lose_nothing_that_was_acknowledged() {
    let found = explore(Scenario { servers: 3, is_free: false, mistake: Mistake::None });
    assert!(matches!(found, Found::Kept(worlds) if worlds > 100_000), "{found:?}");
}

#[test]
fn two_servers_that_do_all_they_can_lose_nothing_that_was_acknowledged() {
    let found = explore(Scenario { servers: 2, is_free: true, mistake: Mistake::None });
    assert!(matches!(found, Found::Kept(worlds) if worlds > 10_000), "{found:?}");
}

#[test]
fn each_planted_mistake_breaks_a_promise() {
    for mistake in [
        Mistake::NoCheck,
        Mistake::CheckBeforePut,
        Mistake::UncheckedTrim,
        Mistake::TrimBeforeCopy,
        Mistake::ReadBeforeClaim,
        Mistake::NumberLeftOut,
        Mistake::NumberUsedTwice,
        Mistake::RemoveBeforeLog,
    ] {
        let found = explore(Scenario { servers: 2, is_free: true, mistake });
        assert!(matches!(found, Found::Broken(_)), "{mistake:?}: {found:?}");
    }
}
