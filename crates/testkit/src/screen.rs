//! Screen of a terminal after a stream of bytes: as much of one as status lines need.

/// A screen of endless height.
#[derive(Debug, Clone)]
pub struct Screen {
    width: usize,
    rows: Vec<Vec<char>>,
    row: usize,
    column: usize,
    /// Times that text ran over the right edge.
    wraps: usize,
}

impl Screen {
    /// Makes an empty screen of `width` columns.
    pub fn new(width: usize) -> Screen {
        Screen {
            width,
            rows: vec![Vec::new()],
            row: 0,
            column: 0,
            wraps: 0,
        }
    }

    /// Shows `bytes`.
    ///
    /// # Panics
    /// At an escape sequence that it does not know.
    pub fn feed(&mut self, bytes: &[u8]) {
        let text = String::from_utf8_lossy(bytes);
        let mut chars = text.chars();
        while let Some(c) = chars.next() {
            match c {
                '\r' => self.column = 0,
                '\n' => self.go_to_row(self.row + 1),
                '\x1b' => self.escape(&mut chars),
                c => self.put(c),
            }
        }
    }

    /// Returns the rows without trailing blanks, from the top to the last that is not empty.
    pub fn lines(&self) -> Vec<String> {
        let mut lines: Vec<String> = self
            .rows
            .iter()
            .map(|row| row.iter().collect::<String>().trim_end().to_owned())
            .collect();
        while lines.last().is_some_and(String::is_empty) {
            lines.pop();
        }
        lines
    }

    /// Returns the number of times that text exceeded the right edge.
    pub fn wraps(&self) -> usize {
        self.wraps
    }

    fn go_to_row(&mut self, row: usize) {
        self.row = row;
        if self.rows.len() <= row {
            self.rows.resize(row + 1, Vec::new());
        }
    }

    fn put(&mut self, c: char) {
        if self.column == self.width {
            self.wraps += 1;
            self.column = 0;
            self.go_to_row(self.row + 1);
        }
        let row = &mut self.rows[self.row];
        if row.len() <= self.column {
            row.resize(self.column + 1, ' ');
        }
        row[self.column] = c;
        self.column += 1;
    }

    /// Interprets `ESC [ parameters letter`; a sequence that is cut off at the end is not shown
    /// yet.
    fn escape(&mut self, chars: &mut std::str::Chars<'_>) {
        if chars.next() != Some('[') {
            return;
        }
        let mut parameters = String::new();
        for c in chars.by_ref() {
            match c {
                '0'..='9' | ';' => parameters.push(c),
                'K' | 'J' => {
                    assert!(parameters.is_empty(), "only erasing to the end is known");
                    self.rows[self.row].truncate(self.column);
                    if c == 'J' {
                        self.rows.truncate(self.row + 1);
                    }
                    return;
                }
                'm' => return,
                other => panic!("unknown escape sequence ESC[{parameters}{other}"),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Screen;

    fn shown(width: usize, bytes: &str) -> Vec<String> {
        let mut screen = Screen::new(width);
        screen.feed(bytes.as_bytes());
        screen.lines()
    }

    #[test]
    fn overwrites_erases_and_wraps() {
        assert_eq!(shown(9, "abc\rX\r\nd"), ["Xbc", "d"]);
        assert_eq!(shown(9, "abc\r\x1b[Kd"), ["d"]);
        assert_eq!(shown(9, "abc\r\x1b[31mX\x1b[0m"), ["Xbc"]);
        assert_eq!(shown(3, "abcdef\r\x1b[J"), ["abc"]);
        let mut screen = Screen::new(3);
        screen.feed(b"abc");
        assert_eq!(screen.wraps(), 0);
        screen.feed(b"d");
        assert_eq!((screen.wraps(), screen.lines().len()), (1, 2));
    }
}
