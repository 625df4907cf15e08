#pragma once

// For functions in headers that files built for one instruction set call: were a copy of such a
// function emitted there, the linker could pick it for every caller, on narrower machines too.
#define TESSERA_INLINE inline __attribute__((always_inline))
