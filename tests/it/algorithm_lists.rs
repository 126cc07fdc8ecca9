//! Lists of algorithms in prose say what the table says.

use bc_digest::Algorithm;
use bc_testkit::TestTree;

use crate::common::Bc;

/// The words of a list that follows `Algorithms:`, up to its full stop or the end of its paragraph.
fn listed(text: &str, known: &[&str]) -> Vec<String> {
    let start = text.find("Algorithms:").expect("a list") + "Algorithms:".len();
    let words = text[start..].split(|c: char| c.is_whitespace() || c == '`');
    let words = words.filter(|word| !word.is_empty());
    let names = words.map_while(|word| {
        let name = word.trim_end_matches('.');
        known
            .contains(&name)
            .then(|| (name.to_owned(), name.len() < word.len()))
    });
    let mut ended = false;
    let up_to_the_stop = names.take_while(|(_, last)| !std::mem::replace(&mut ended, *last));
    up_to_the_stop.map(|(name, _)| name).collect()
}

#[test]
fn help_readme_and_guide_list_every_algorithm_in_order() {
    let names: Vec<&str> = Algorithm::ALL.iter().map(|a| a.name()).collect();
    let t = TestTree::new();
    let help = t.bc_line("hash --help").go().code(0).text();
    // The sentence that follows begins with a name, too.
    assert_eq!(listed(&help, &names)[..names.len()], names);
    assert_eq!(listed(include_str!("../../README.md"), &names), names);
    let guide = include_str!("../../src/guide/hash.md");
    assert_eq!(listed(guide, &names), names);
}
