//! An assembler for the eBPF instructions that the XDP programs need (RFC 9669).

use std::os::fd::{AsRawFd, BorrowedFd};

/// An instruction as bpf(2) takes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub(crate) struct Instruction {
    code: u8,
    registers: u8,
    offset: i16,
    immediate: i32,
}

/// A register. `R1` to `R5` are arguments and lost in a call, `R0` is its result, `R10` the frame of the stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Register {
    R0,
    R1,
    R2,
    R3,
    R4,
    R5,
    R6,
    R7,
    R8,
    R9,
    R10,
}

/// Octets of a load or store.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Width {
    One = 0x10,
    Two = 0x08,
    Four = 0x00,
    Eight = 0x18,
}

/// When a jump is taken.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Condition {
    Equal = 0x10,
    Greater = 0x20,
    AnyBit = 0x40,
    NotEqual = 0x50,
    AtMost = 0xb0,
}

/// An operation on two numbers of 64 bits.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Arithmetic {
    Add = 0x00,
    Subtract = 0x10,
    Multiply = 0x20,
    Or = 0x40,
    And = 0x50,
    ShiftLeft = 0x60,
    ShiftRight = 0x70,
    Xor = 0xa0,
}

/// A helper of the kernel.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Helper {
    MapLookup = 1,
    AdjustHead = 44,
    RedirectMap = 51,
    /// Length of a frame, of any number of buffers (Linux 5.18).
    BufferLength = 188,
}

/// A place to jump to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Label(usize);

/// Instructions in the making. Jumps name labels, which [`Assembler::finish`] resolves.
#[derive(Debug, Default)]
pub(crate) struct Assembler {
    instructions: Vec<Instruction>,
    places: Vec<usize>,
    jumps: Vec<(usize, Label)>,
}

const UNPLACED: usize = usize::MAX;

impl Assembler {
    /// A label that stands nowhere yet.
    pub(crate) fn label(&mut self) -> Label {
        self.places.push(UNPLACED);
        Label(self.places.len() - 1)
    }

    /// Puts a label before the next instruction.
    pub(crate) fn place(&mut self, label: Label) {
        self.places[label.0] = self.instructions.len();
    }

    /// `to = from`
    pub(crate) fn copy(&mut self, to: Register, from: Register) {
        self.push(0xbf, to, Some(from), 0, 0);
    }

    /// `to = value`
    pub(crate) fn set(&mut self, to: Register, value: i32) {
        self.push(0xb7, to, None, 0, value);
    }

    /// `to += value`
    pub(crate) fn add(&mut self, to: Register, value: i32) {
        self.calculate(Arithmetic::Add, to, value);
    }

    /// `to = to operation value`, the value extended by its sign
    pub(crate) fn calculate(&mut self, operation: Arithmetic, to: Register, value: i32) {
        self.push(0x07 | operation as u8, to, None, 0, value);
    }

    /// `to = to operation from`
    pub(crate) fn calculate_by(&mut self, operation: Arithmetic, to: Register, from: Register) {
        self.push(0x0f | operation as u8, to, Some(from), 0, 0);
    }

    /// `to = value`, of 64 bits
    pub(crate) fn set_long(&mut self, to: Register, value: u64) {
        self.push(0x18, to, None, 0, value as i32);
        self.push(0, Register::R0, None, 0, (value >> 32) as i32);
    }

    /// Between the host's byte order and the network's: the lowest octets of a register, all others become zero.
    pub(crate) fn swap_to_network(&mut self, width: Width, register: Register) {
        let bits = match width {
            Width::One => return,
            Width::Two => 16,
            Width::Four => 32,
            Width::Eight => 64,
        };
        self.push(0xdc, register, None, 0, bits);
    }

    /// `to = ` the map itself
    pub(crate) fn set_map(&mut self, to: Register, map: BorrowedFd<'_>) {
        const PSEUDO_MAP_FD: u8 = 1;
        self.instructions.push(Instruction {
            code: 0x18,
            registers: PSEUDO_MAP_FD << 4 | to as u8,
            offset: 0,
            immediate: map.as_raw_fd(),
        });
        self.instructions.push(Instruction { code: 0, registers: 0, offset: 0, immediate: 0 });
    }

    /// `to = *(from + offset)`
    pub(crate) fn load(&mut self, width: Width, to: Register, from: Register, offset: i16) {
        self.push(0x61 | width as u8, to, Some(from), offset, 0);
    }

    /// `*(to + offset) = from`
    pub(crate) fn store(&mut self, width: Width, to: Register, offset: i16, from: Register) {
        self.push(0x63 | width as u8, to, Some(from), offset, 0);
    }

    /// `*(to + offset) = value`
    pub(crate) fn store_value(&mut self, width: Width, to: Register, offset: i16, value: i32) {
        self.push(0x62 | width as u8, to, None, offset, value);
    }

    /// Goes on elsewhere.
    pub(crate) fn jump(&mut self, label: Label) {
        self.jumps.push((self.instructions.len(), label));
        self.push(0x05, Register::R0, None, 0, 0);
    }

    /// Goes on elsewhere when a register and a value compare so.
    pub(crate) fn jump_if(&mut self, left: Register, condition: Condition, value: i32, label: Label) {
        self.jumps.push((self.instructions.len(), label));
        self.push(0x05 | condition as u8, left, None, 0, value);
    }

    /// Goes on elsewhere when two registers compare so.
    pub(crate) fn jump_if_register(&mut self, left: Register, condition: Condition, right: Register, label: Label) {
        self.jumps.push((self.instructions.len(), label));
        self.push(0x0d | condition as u8, left, Some(right), 0, 0);
    }

    /// `R0` becomes the address of the entry of a map whose key is on the stack at `key`, or 0.
    pub(crate) fn look_up(&mut self, map: BorrowedFd<'_>, key: i32) {
        self.copy(Register::R2, Register::R10);
        self.add(Register::R2, key);
        self.set_map(Register::R1, map);
        self.call(Helper::MapLookup);
    }

    /// Calls the kernel.
    pub(crate) fn call(&mut self, helper: Helper) {
        self.push(0x85, Register::R0, None, 0, helper as i32);
    }

    /// Ends the program with the value of `R0`.
    pub(crate) fn exit(&mut self) {
        self.push(0x95, Register::R0, None, 0, 0);
    }

    /// The program, its jumps resolved.
    pub(crate) fn finish(mut self) -> Vec<Instruction> {
        for (from, label) in self.jumps {
            let to = self.places[label.0];
            debug_assert_ne!(to, UNPLACED, "a label stands nowhere");
            // Jumps count from the next instruction.
            self.instructions[from].offset = (to as isize - from as isize - 1) as i16;
        }
        self.instructions
    }

    fn push(&mut self, code: u8, to: Register, from: Option<Register>, offset: i16, immediate: i32) {
        let registers = from.map_or(0, |from| (from as u8) << 4) | to as u8;
        self.instructions.push(Instruction { code, registers, offset, immediate });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jumps_go_to_their_labels() {
        let mut program = Assembler::default();
        let (start, end) = (program.label(), program.label());
        program.place(start);
        program.jump_if(Register::R1, Condition::Equal, 7, end);
        program.jump(start);
        program.place(end);
        program.exit();
        let offsets: Vec<i16> = program.finish().iter().map(|instruction| instruction.offset).collect();
        assert_eq!(offsets, [1, -2, 0]);
    }

    #[test]
    fn instructions_are_those_of_the_instruction_set() {
        // RFC 9669: r2 = *(u16 *)(r1 + 12); r0 = 2; exit
        let mut program = Assembler::default();
        program.load(Width::Two, Register::R2, Register::R1, 12);
        program.set(Register::R0, 2);
        program.exit();
        let expected = [(0x69, 0x12, 12, 0), (0xb7, 0x00, 0, 2), (0x95, 0, 0, 0)];
        for (found, (code, registers, offset, immediate)) in program.finish().into_iter().zip(expected) {
            assert_eq!(found, Instruction { code, registers, offset, immediate });
        }
    }
}
