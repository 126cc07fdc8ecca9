//! Hash functions of RustCrypto that are computed one message at a time: one line each below.

use sha3::Digest as _;

use crate::{Algorithm, Digest};

macro_rules! functions {
    ($($name:ident: $function:ty;)*) => {
        /// A message on its way through one of the functions.
        #[derive(Clone)]
        pub(crate) enum RustCrypto {
            $($name($function),)*
        }

        impl RustCrypto {
            /// Returns a hasher; `None` if the algorithm is none of these.
            pub(crate) fn new(algorithm: Algorithm) -> Option<RustCrypto> {
                match algorithm {
                    $(Algorithm::$name => Some(RustCrypto::$name(<$function>::new())),)*
                    _ => None,
                }
            }

            pub(crate) fn update(&mut self, data: &[u8]) {
                match self {
                    $(RustCrypto::$name(function) => function.update(data),)*
                }
            }

            pub(crate) fn finalize(&self) -> Digest {
                match self {
                    $(RustCrypto::$name(function) => Digest::new(&function.clone().finalize()),)*
                }
            }

            pub(crate) fn reset(&mut self) {
                match self {
                    $(RustCrypto::$name(function) => *function = <$function>::new(),)*
                }
            }
        }
    };
}

functions! {
    Sha3_224: sha3::Sha3_224;
    Sha3_256: sha3::Sha3_256;
    Sha3_384: sha3::Sha3_384;
    Sha3_512: sha3::Sha3_512;
    Sm3: sm3::Sm3;
}
