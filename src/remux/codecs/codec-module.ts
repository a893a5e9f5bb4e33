import { SluiceError } from "../../base/errors.ts";

/** Names of the scripts with WebAssembly codecs. */
export type CodecScriptName = "aac" | "ac3" | "dts" | "mpeg" | "opus";

/** Returns the CommonJS script of a codec, and its WebAssembly if the script does not contain it. */
export type CodecPrograms = (name: CodecScriptName) => {
  readonly script: string;
  readonly wasm: Uint8Array | undefined;
};

/** What the scripts print concerns damaged input, which is expected. */
const SILENT = { log() {}, error() {}, warn() {} };

/**
 * Evaluates the script of a codec in this thread and returns its exports. A codec takes a few per cent of a core, and runs in
 * slices, so that it needs no worker. Throws `SluiceError("unsupported_codec")` if the script is missing or invalid.
 */
function evaluateScript(script: string, name: CodecScriptName): Record<string, unknown> {
  const module = { exports: {} as Record<string, unknown> };
  // The scripts request a web worker package for a part that is not used.
  const require = () => Object;
  try {
    new Function("exports", "module", "require", "console", script)(module.exports, module, require, SILENT);
  } catch (error) {
    throw new SluiceError("unsupported_codec", `the ${name} codec cannot be loaded`, { cause: error });
  }
  return module.exports;
}

/** A module of Emscripten with FFmpeg codecs. Pointers are byte positions in `HEAPU8`. */
export interface FfmpegModule {
  /** Replaced when the memory grows: never keep a reference. */
  readonly HEAPU8: Uint8Array<ArrayBuffer>;
}

/** The decoders of `@mediabunny/ac3` and `@mediabunny/dts`. */
export interface FfmpegDecoders extends FfmpegModule {
  _init_decoder(codec: number): number;
  _configure_decode_packet(context: number, bytes: number): number;
  _decode_packet(context: number, pts: bigint): number;
  _get_decoded_format(context: number): number;
  _get_decoded_plane_ptr(context: number, plane: number): number;
  _get_decoded_channels(context: number): number;
  _get_decoded_sample_rate(context: number): number;
  _get_decoded_sample_count(context: number): number;
  _close_decoder(context: number): void;
}

/** The encoder of `@mediabunny/aac-encoder`. */
export interface FfmpegEncoder extends FfmpegModule {
  _init_encoder(channels: number, sampleRate: number, bitsPerSecond: number): number;
  _get_encoder_frame_size(context: number): number;
  _get_encoder_extradata(context: number): number;
  _get_encoder_extradata_size(context: number): number;
  _get_encode_input_ptr(context: number, bytes: number): number;
  _send_frame(context: number, pts: bigint): number;
  _receive_packet(context: number): number;
  _get_encoded_data(context: number): number;
  _get_encoded_pts(context: number): bigint;
  _close_encoder(context: number): void;
}

type CreateModule = (options: { readonly wasmBinary: Uint8Array | undefined }) => Promise<FfmpegModule>;

/** The codecs that have been loaded. A codec that fails is loaded again for its next use. */
export class CodecModules {
  readonly #programs: CodecPrograms;
  readonly #loaded = new Map<CodecScriptName, Promise<Record<string, unknown>>>();
  readonly #ffmpeg = new Map<CodecScriptName, Promise<FfmpegModule>>();

  constructor(programs: CodecPrograms) {
    this.#programs = programs;
  }

  /** Returns the exports of a script. */
  exports(name: CodecScriptName): Promise<Record<string, unknown>> {
    return remember(this.#loaded, name, async () => evaluateScript(this.#programs(name).script, name));
  }

  /** Returns the module of a script that was built with Emscripten; it loads in about 30 ms. */
  ffmpeg<T extends FfmpegModule>(name: "aac" | "ac3" | "dts"): Promise<T> {
    const load = async () => {
      const { script, wasm: wasmBinary } = this.#programs(name);
      const { default: create } = evaluateScript(script, name);
      return (create as CreateModule)({ wasmBinary });
    };
    return remember(this.#ffmpeg, name, load) as Promise<T>;
  }

  /** Forgets a module whose code has failed: its memory is in an unknown state. */
  discard(name: CodecScriptName): void {
    this.#ffmpeg.delete(name);
    this.#loaded.delete(name);
  }
}

function remember<T>(
  loaded: Map<CodecScriptName, Promise<T>>,
  name: CodecScriptName,
  load: () => Promise<T>,
): Promise<T> {
  let module = loaded.get(name);
  if (!module) {
    module = load();
    loaded.set(name, module);
    module.catch(() => loaded.delete(name));
  }
  return module;
}
