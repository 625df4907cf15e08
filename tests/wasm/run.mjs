// Runs a wasm32-wasi program: node run.mjs PROGRAM.wasm [ARGUMENT...]. Ends with the program's own
// exit status, or with 1 and what the program trapped on. It has no file and no variable of this
// machine's.
import { readFile } from 'node:fs/promises';
import { WASI } from 'node:wasi';

const wasi = new WASI({ version: 'preview1', args: process.argv.slice(2), returnOnExit: true });
const program = await WebAssembly.compile(await readFile(process.argv[2]));
const instance = await WebAssembly.instantiate(program, { wasi_snapshot_preview1: wasi.wasiImport });
try {
  process.exitCode = wasi.start(instance);
} catch (error) {
  console.error(`trapped: ${error.message}`);
  process.exitCode = 1;
}
