//! Second names: the name that a restore gives to the damaged file that it replaces, which later
//! looks at the tree do not take for new damage.

use bc_digest::Digest;

/// Returns the ending of the second name of a damaged file with this digest, `None` where it could
/// not be read.
pub fn second_ending(digest: Option<Digest>) -> String {
    let digest = digest.map_or_else(|| "unread".to_owned(), |digest| digest.to_string());
    format!(".damaged-{}", &digest[..digest.len().min(8)])
}

/// True if a path looks like the second name of a damaged file with this digest.
pub fn is_second(path: &[u8], digest: Option<Digest>) -> bool {
    let end = second_ending(digest);
    let number = path.iter().rev().take_while(|byte| byte.is_ascii_digit());
    let numbered = path[..path.len() - number.count()].strip_suffix(b"-");
    path.ends_with(end.as_bytes()) || numbered.is_some_and(|path| path.ends_with(end.as_bytes()))
}
