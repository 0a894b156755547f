//! What hosts of both kinds do alike: they connect, work, lose their connections, and look at
//! everything when it is calm.

use zonelab_device::Completion;
use zonelab_nvme::Status;

use super::arena::Arena;
use super::counts::add;
use super::dice::Dice;
use super::link::{Link, Lost};
use super::stage::{Beat, Phase, Stage};

/// Commands in flight at most.
pub(crate) const DEPTH: usize = 12;
/// One step in so many ends the connection in good order.
const LEAVES_ONE_IN: u64 = 4_000;

/// Whom a host works with.
pub(crate) struct Around<'a> {
    pub(crate) stage: &'a Stage,
    pub(crate) beat: &'a Beat,
}

impl Around<'_> {
    /// What [`Link::run`] takes.
    pub(crate) const fn both(&self) -> (&Stage, &Beat) {
        (self.stage, self.beat)
    }
}

/// What a completion was for its host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    GoOn,
    /// What was lost earlier got in the way: look at the drive again.
    Look,
}

/// Whether a command came after its queue had ended, in the moment before the connection ends
/// too. Nothing of it has happened.
pub(crate) fn is_too_late(completion: &Completion, around: &Around<'_>) -> bool {
    let is_too_late = completion.status == Status::ABORTED_SQ_DELETION;
    add(&around.stage.counts.too_late, is_too_late.into());
    is_too_late
}

/// What a host does, and what it knows. A violation of what the drive promises is a panic.
pub(crate) trait Work {
    /// Learns what has become of the drive while there was no connection.
    fn look(&mut self, link: &mut Link, around: &Around<'_>) -> Result<(), Lost>;

    /// Submits a command, if it finds one to submit.
    fn submit(&mut self, link: &mut Link, dice: &mut Dice) -> Result<(), Lost>;

    /// A command has ended.
    fn ended(&mut self, completion: Completion, around: &Around<'_>) -> Next;

    /// All that is in flight gets no answer.
    fn lost(&mut self);

    /// Reads everything and compares.
    fn verify(&mut self, link: &mut Link, around: &Around<'_>) -> Result<(), Lost>;
}

/// Works until all is over.
pub(crate) fn run(work: &mut impl Work, host: u32, arena: &Arena, around: &Around<'_>) {
    let stage = around.stage;
    let mut dice = Dice::new(stage.seed, "host", host.into());
    while !stage.is_over() {
        let Some(mut link) = Link::connect((arena, stage), host, &mut dice, around.beat) else {
            return;
        };
        let worked = connected(work, &mut link, &mut dice, around);
        // Whatever is left in flight of a connection that ends gets no answer.
        work.lost();
        match worked {
            Err(Lost) => drop(link),
            Ok(is_through) => {
                link.leave(around.beat);
                if is_through {
                    around.beat.rest();
                }
            }
        }
    }
}

/// Works on a connection. True once it was calm and everything was looked at.
fn connected(
    work: &mut impl Work,
    link: &mut Link,
    dice: &mut Dice,
    around: &Around<'_>,
) -> Result<bool, Lost> {
    work.look(link, around)?;
    let mut done = Vec::new();
    let mut next = Next::GoOn;
    while next == Next::GoOn && around.stage.is_storm() {
        for _ in link.in_flight()..DEPTH {
            work.submit(link, dice)?;
        }
        next = step(work, link, &mut done, around)?;
        if dice.below(LEAVES_ONE_IN) == 0 {
            next = Next::Look;
        }
    }
    if settle(work, link, &mut done, around)? == Next::Look {
        next = Next::Look;
    }
    if next == Next::Look || around.stage.phase() != Phase::Calm {
        return Ok(false);
    }
    work.verify(link, around)?;
    Ok(true)
}

/// Waits until nothing is in flight any more.
pub(crate) fn settle(
    work: &mut impl Work,
    link: &mut Link,
    done: &mut Vec<Completion>,
    around: &Around<'_>,
) -> Result<Next, Lost> {
    let mut next = Next::GoOn;
    while link.in_flight() > 0 {
        if step(work, link, done, around)? == Next::Look {
            next = Next::Look;
        }
    }
    Ok(next)
}

/// Waits for commands that end.
fn step(
    work: &mut impl Work,
    link: &mut Link,
    done: &mut Vec<Completion>,
    around: &Around<'_>,
) -> Result<Next, Lost> {
    if link.in_flight() == 0 {
        return Ok(Next::GoOn);
    }
    let got = link.next(around.stage, around.beat, done);
    let mut next = Next::GoOn;
    for completion in done.drain(..) {
        if work.ended(completion, around) == Next::Look {
            next = Next::Look;
        }
    }
    got.map(|()| next)
}
