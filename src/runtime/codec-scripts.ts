import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";

/** The scripts with WebAssembly codecs: package, and the script relative to the folder of its main file. */
const SCRIPTS = {
  aac: ["@mediabunny/aac-encoder", "../modules/build/aac.js"],
  ac3: ["@mediabunny/ac3", "../modules/build/ac3.js"],
  dts: ["@mediabunny/dts", "../modules/build/dts.js"],
  mpeg: ["mpg123-decoder", "dist/mpg123-decoder.min.js"],
  opus: ["opus-decoder", "dist/opus-decoder.min.js"],
} as const;

/** Names of the codec scripts. */
export type CodecName = keyof typeof SCRIPTS;

/** The program of a codec. */
interface CodecProgram {
  /** CommonJS. If there is `wasm`, it is the option `wasmBinary` of the default export. */
  readonly script: string;
  /** WebAssembly; undefined if the script contains it. */
  readonly wasm: Uint8Array<ArrayBuffer> | undefined;
}

/** A {@link CodecProgram} as source text can contain it. */
interface PackedProgram {
  readonly script: string;
  /** In base64. */
  readonly wasm: string | undefined;
}

/** A string with one character for each byte: evaluating it takes longer than decoding base64, and it stays in memory. */
const BINARY = /binaryDecode\(('(?:[^'\\]+|\\.)*')\)/s;

/**
 * Reads the program of a codec; Bun runs this when it builds the single binary. The packages export their codecs in workers only, and
 * those workers do not answer on Bun; these scripts run in any context.
 */
export function readPackedProgram(name: CodecName): PackedProgram {
  const packages = createRequire(import.meta.url);
  const [packageName, file] = SCRIPTS[name];
  const text = readFileSync(join(dirname(packages.resolve(packageName)), file), "utf8")
    // The address is used only to find a separate WebAssembly file, which these scripts do not have.
    .replaceAll("import.meta.url", '""')
    .replace(/\n\/\/# sourceMappingURL=.*\s*$/, "\n");
  const [call, literal] = BINARY.exec(text) ?? [];
  if (!call) return { script: text, wasm: undefined };
  const binary: string = new Function(`return ${literal}`)();
  return {
    script: text.replace(call, () => 'Module["wasmBinary"]'),
    wasm: Buffer.from(binary, "latin1").toString("base64"),
  };
}

/** Returns a program that {@link readPackedProgram} read. */
export function unpackProgram({ script, wasm }: PackedProgram): CodecProgram {
  return { script, wasm: wasm === undefined ? undefined : new Uint8Array(Buffer.from(wasm, "base64")) };
}

/** Returns the program of a codec, read from its package. */
export function readCodecProgram(name: CodecName): CodecProgram {
  return unpackProgram(readPackedProgram(name));
}
