//! Subordinate ids: who has some, as `/etc/subuid` and `/etc/subgid` say, and how a user gets some. Both lists
//! are only read.

/// How many ids an image may need.
const ENOUGH: u64 = 65_536;
/// Where the ids of new users begin.
const FIRST: u64 = 100_000;

/// Both lists of `user:first:count`.
#[derive(Debug, Default)]
pub(super) struct Lists([String; 2]);

/// The user of a range, its first id, and how many it has.
type Range<'a> = (&'a str, u64, u64);

fn ranges(list: &str) -> impl Iterator<Item = Range<'_>> {
    list.lines().filter_map(|line| {
        let mut fields = line.split(':').map(str::trim);
        Some((fields.next()?, fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
    })
}

impl Lists {
    /// Those of this machine.
    pub fn read() -> Lists {
        Lists(["/etc/subuid", "/etc/subgid"].map(|path| std::fs::read_to_string(path).unwrap_or_default()))
    }

    /// The users with enough ids in both lists.
    pub fn users(&self) -> impl Iterator<Item = &str> {
        let has_enough = |list: &str, user: &str| {
            let own = ranges(list).filter(|(name, ..)| *name == user);
            own.map(|(.., count)| count).sum::<u64>() >= ENOUGH
        };
        let all = dunnage_analysis::distinct(ranges(&self.0[0]).map(|(user, ..)| user)).into_iter();
        all.filter(move |user| self.0.iter().all(|list| has_enough(list, user)))
    }

    /// Whether no other user has any of a user's ids.
    pub fn are_its_own(&self, user: &str) -> bool {
        let apart = |one: Range<'_>, other: Range<'_>| {
            one.1.saturating_add(one.2) <= other.1 || other.1.saturating_add(other.2) <= one.1
        };
        let is_apart = |list: &String| {
            let (own, others): (Vec<_>, Vec<_>) = ranges(list).partition(|(name, ..)| *name == user);
            own.iter().all(|own| others.iter().all(|other| apart(*own, *other)))
        };
        self.0.iter().all(is_apart)
    }

    /// The group that is root's outside, for a user whose subordinate ids are taken from the first one.
    pub fn first_group(&self, user: &str) -> Option<u32> {
        let own = ranges(&self.0[1]).filter(|(name, ..)| *name == user);
        own.map(|(_, first, _)| first).min()?.try_into().ok()
    }

    /// The first id after all ranges.
    fn first_free(&self) -> u64 {
        let ends = self.0.iter().flat_map(|list| ranges(list)).map(|(_, first, count)| first + count);
        ends.fold(FIRST, u64::max)
    }

    /// The command that gives some to a user.
    pub fn remedy(&self, user: &str) -> String {
        let first = self.first_free();
        let range = format!("{first}-{}", first + ENOUGH - 1);
        format!("`usermod --add-subuids {range} --add-subgids {range} {user}`")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_in_a_remedy_are_nobodys() {
        let lists =
            Lists(["ann:100000:65536\nbob:165536:65536\n", "ann:300000:10\nnonsense\n"].map(Into::into));
        let remedy = "`usermod --add-subuids 300010-365545 --add-subgids 300010-365545 eve`";
        assert_eq!(lists.remedy("eve"), remedy);
        assert!(Lists::default().remedy("eve").contains(" 100000-165535 "));
    }

    #[test]
    fn ids_that_two_users_have_are_neithers_own() {
        let lists =
            ["ann:100000:65536\nbob:165535:65536\neve:300000:65536\n", "ann:100000:65536\neve:300000:10\n"];
        let lists = Lists(lists.map(Into::into));
        assert_eq!(["ann", "bob", "eve"].map(|user| lists.are_its_own(user)), [false, false, true]);
    }

    #[test]
    fn users_have_enough_ids_in_both_lists() {
        let lists = [
            "few:1000:10\nhalf:100000:65536\nparts:200000:65530\nparts:300000:6\nwhole:400000:65536\n",
            "few:1000:10\nparts:200000:65536\nwhole:400000:70000\n",
        ];
        let lists = Lists(lists.map(Into::into));
        assert_eq!(lists.users().collect::<Vec<_>>(), ["parts", "whole"]);
    }
}
