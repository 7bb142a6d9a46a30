//! Tests of the models of drives. They are one program, because each would be linked for itself.

mod array;
mod cut;
mod hdd;
mod power;
mod ssd;
