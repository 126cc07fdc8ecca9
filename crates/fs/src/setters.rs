//! Setters of options, for all crates of this project.

/// Gives options a method for each field, by its name, which sets it.
#[doc(hidden)]
#[macro_export]
macro_rules! setters {
    ($type:ident $(<$life:lifetime>)?: $($field:ident: $of:ty),+ $(,)?) => {
        impl $(<$life>)? $type $(<$life>)? {
            $(
                /// Sets the field of this name.
                #[must_use]
                pub fn $field(mut self, $field: $of) -> Self {
                    self.$field = $field;
                    self
                }
            )+
        }
    };
}
