import type { Image } from "./contract.ts";

/** Larger pictures are not logos and would cost a browser too much memory. */
const MAX_SIDE_PIXELS = 8192;

/**
 * Detects the type of a picture by its first bytes. Returns undefined unless it is PNG, JPEG, GIF or WebP, which cannot
 * contain scripts, and has 1 to 8192 pixels a side.
 */
export function imageType(bytes: Uint8Array): Image["mime"] | undefined {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const found = png(view) ?? gif(view) ?? webp(view) ?? jpeg(view);
  if (!found) return undefined;
  const { mime, width, height } = found;
  return isSide(width) && isSide(height) ? mime : undefined;
}

interface Found {
  readonly mime: Image["mime"];
  readonly width: number;
  readonly height: number;
}

function isSide(pixels: number): boolean {
  return pixels >= 1 && pixels <= MAX_SIDE_PIXELS;
}

/** ISO 15948 5.2, 11.2.2: signature and IHDR. */
function png(view: DataView): Found | undefined {
  if (view.byteLength < 33 || view.getUint32(0) !== 0x89504e47 || view.getUint32(4) !== 0x0d0a1a0a)
    return undefined;
  if (view.getUint32(12) !== 0x49484452) return undefined;
  return { mime: "image/png", width: view.getUint32(16), height: view.getUint32(20) };
}

/** GIF89a 17, 18: signature and logical screen descriptor. */
function gif(view: DataView): Found | undefined {
  if (view.byteLength < 13 || !/^GIF8[79]a$/.test(ascii(view, 0, 6))) return undefined;
  return { mime: "image/gif", width: view.getUint16(6, true), height: view.getUint16(8, true) };
}

/** RFC 9649 2.4 to 2.7: RIFF and one of three frame types. */
function webp(view: DataView): Found | undefined {
  if (view.byteLength < 30 || ascii(view, 0, 4) !== "RIFF" || ascii(view, 8, 4) !== "WEBP") return undefined;
  const mime = "image/webp";
  switch (ascii(view, 12, 4)) {
    case "VP8 ":
      return {
        mime,
        width: view.getUint16(26, true) & 0x3fff,
        height: view.getUint16(28, true) & 0x3fff,
      };
    case "VP8L": {
      const bits = view.getUint32(21, true);
      return { mime, width: (bits & 0x3fff) + 1, height: ((bits >>> 14) & 0x3fff) + 1 };
    }
    case "VP8X":
      return { mime, width: uint24(view, 24) + 1, height: uint24(view, 27) + 1 };
    default:
      return undefined;
  }
}

/** ITU-T T.81 B.1, B.2.2: scans the markers up to the frame header. */
function jpeg(view: DataView): Found | undefined {
  if (view.byteLength < 4 || view.getUint16(0) !== 0xffd8) return undefined;
  for (let at = 2; at + 9 <= view.byteLength; ) {
    if (view.getUint8(at) !== 0xff) return undefined;
    const marker = view.getUint8(at + 1);
    if (marker === 0xff) {
      at++;
      continue;
    }
    const length = view.getUint16(at + 2);
    if (length < 2) return undefined;
    const isFrame = marker >= 0xc0 && marker <= 0xcf && marker !== 0xc4 && marker !== 0xc8 && marker !== 0xcc;
    if (isFrame) return { mime: "image/jpeg", width: view.getUint16(at + 7), height: view.getUint16(at + 5) };
    at += 2 + length;
  }
  return undefined;
}

function ascii(view: DataView, at: number, length: number): string {
  let text = "";
  for (let i = 0; i < length; i++) text += String.fromCharCode(view.getUint8(at + i));
  return text;
}

function uint24(view: DataView, at: number): number {
  return view.getUint16(at, true) | (view.getUint8(at + 2) << 16);
}
