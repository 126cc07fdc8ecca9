//! The sequence of rounds that SHA-256 and SHA-512 share.

/// Expands to the sixteen rounds of one trip around the ring of message words `w`, each calling
/// `$round!(a b c d e f g h, i)`: instead of moving the working variables, their roles rotate, and
/// are back in place after eight rounds.
macro_rules! sixteen_rounds {
    ($round:ident, $a:ident $b:ident $c:ident $d:ident $e:ident $f:ident $g:ident $h:ident) => {
        $round!($a $b $c $d $e $f $g $h, 0);
        $round!($h $a $b $c $d $e $f $g, 1);
        $round!($g $h $a $b $c $d $e $f, 2);
        $round!($f $g $h $a $b $c $d $e, 3);
        $round!($e $f $g $h $a $b $c $d, 4);
        $round!($d $e $f $g $h $a $b $c, 5);
        $round!($c $d $e $f $g $h $a $b, 6);
        $round!($b $c $d $e $f $g $h $a, 7);
        $round!($a $b $c $d $e $f $g $h, 8);
        $round!($h $a $b $c $d $e $f $g, 9);
        $round!($g $h $a $b $c $d $e $f, 10);
        $round!($f $g $h $a $b $c $d $e, 11);
        $round!($e $f $g $h $a $b $c $d, 12);
        $round!($d $e $f $g $h $a $b $c, 13);
        $round!($c $d $e $f $g $h $a $b, 14);
        $round!($b $c $d $e $f $g $h $a, 15);
    };
}
pub(super) use sixteen_rounds;
