//! A manifest's text, as a program would write it that shares nothing with ours.

use std::collections::BTreeSet;

/// One file.
pub(super) struct Entry {
    pub(super) path: Vec<u8>,
    pub(super) size: u64,
    pub(super) ino: u64,
    pub(super) nlink: u64,
    pub(super) mtime_ns: i64,
    /// Equal numbers are equal contents.
    pub(super) content: u64,
}

/// Returns the whole text: header, the directories on the way and the files in order, trailer.
pub(super) fn manifest(
    header: &str,
    mut files: Vec<Entry>,
    sha256: &dyn Fn(&[u8]) -> String,
) -> Vec<u8> {
    let mut dirs = BTreeSet::new();
    for file in &files {
        let slashes = file
            .path
            .iter()
            .enumerate()
            .filter(|(_, byte)| **byte == b'/');
        dirs.extend(slashes.map(|(at, _)| file.path[..at].to_vec()));
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));
    let mut text = format!(
        "{{\"type\":\"header\",\"schema\":1,\"tool\":\"bc integrity\",\"version\":\"0.1.0\",\
         \"algorithm\":\"sha256\",{header},\"scope\":null,\"shard\":null,\"options\":{{}}}}\n"
    )
    .into_bytes();
    push_dir(&mut text, b".", 1);
    let mut ahead = dirs.iter().zip(2..).peekable();
    for file in &files {
        while let Some((dir, ino)) = ahead.next_if(|(dir, _)| **dir < file.path) {
            push_dir(&mut text, dir, ino);
        }
        push_file(&mut text, file);
    }
    let bytes: u64 = files.iter().map(|file| file.size).sum();
    let (count, dirs) = (files.len(), dirs.len() + 1);
    let trailer = format!(
        "{{\"type\":\"trailer\",\"entries\":{},\"files\":{count},\"dirs\":{dirs},\
         \"bytes\":{bytes},\"errors\":0,\"sha256\":\"{}\"}}\n",
        count + dirs,
        sha256(&text),
    );
    text.extend_from_slice(trailer.as_bytes());
    text
}

fn push_dir(text: &mut Vec<u8>, path: &[u8], ino: u64) {
    text.extend_from_slice(b"{\"type\":\"entry\"");
    push_path(text, path);
    text.extend_from_slice(
        format!(
            ",\"kind\":\"dir\",\"size\":4096,\"mode\":16877,\"uid\":0,\"gid\":0,\
             \"mtime_ns\":1700000000000000000,\"ctime_ns\":1700000000000000000,\"ino\":{ino},\
             \"nlink\":2}}\n"
        )
        .as_bytes(),
    );
}

fn push_file(text: &mut Vec<u8>, file: &Entry) {
    text.extend_from_slice(b"{\"type\":\"entry\"");
    push_path(text, &file.path);
    text.extend_from_slice(
        format!(
            ",\"kind\":\"file\",\"size\":{},\"mode\":33188,\"uid\":1000,\"gid\":1000,\
             \"mtime_ns\":{},\"ctime_ns\":1700000000000000000,\"ino\":{},\"nlink\":{},\
             \"digest\":\"{}\"}}\n",
            file.size,
            file.mtime_ns,
            file.ino,
            file.nlink,
            digest(file.content),
        )
        .as_bytes(),
    );
}

/// Returns a text in place of the digest of a content.
pub(super) fn digest(content: u64) -> String {
    let mut rng = crate::Rng::new(content);
    (0..4).map(|_| format!("{:016x}", rng.next_u64())).collect()
}

fn push_path(text: &mut Vec<u8>, path: &[u8]) {
    text.extend_from_slice(b",\"path\":\"");
    for letter in String::from_utf8_lossy(path).chars() {
        match letter {
            '"' | '\\' => text.extend([b'\\', letter as u8]),
            letter if (letter as u32) < 0x20 => {
                text.extend_from_slice(format!("\\u{:04x}", letter as u32).as_bytes());
            }
            letter => text.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    text.push(b'"');
    if std::str::from_utf8(path).is_err() {
        text.extend_from_slice(b",\"path_b64\":\"");
        text.extend_from_slice(base64(path).as_bytes());
        text.push(b'"');
    }
}

fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for piece in bytes.chunks(3) {
        let bits = piece
            .iter()
            .fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte));
        let bits = bits << (8 * (3 - piece.len()));
        for place in 0..4 {
            let letter = LETTERS[(bits >> (18 - 6 * place)) as usize & 63];
            text.push(if place <= piece.len() {
                letter as char
            } else {
                '='
            });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_bytes() {
        for (bytes, text) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
        ] {
            assert_eq!(base64(bytes.as_bytes()), text);
        }
    }
}
