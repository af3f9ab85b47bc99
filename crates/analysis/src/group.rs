//! Groups of things that belong together, in order of first appearance.

/// Things grouped by a key: each group at the position of its first member.
pub fn in_groups<T, K: PartialEq>(
    all: impl IntoIterator<Item = T>,
    key: impl Fn(&T) -> K,
) -> Vec<(K, Vec<T>)> {
    let mut groups: Vec<(K, Vec<T>)> = Vec::new();
    for one in all {
        let own = key(&one);
        match groups.iter_mut().find(|(known, _)| *known == own) {
            Some((_, group)) => group.push(one),
            None => groups.push((own, vec![one])),
        }
    }
    groups
}
