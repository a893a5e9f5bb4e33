/** Encodes text in a character set without Unicode; throws for characters that it does not contain. The table is that of the
 * runtime's decoder. */
export function encodeCharset(text: string, charset: string): Uint8Array {
  const codes = codesOf(charset);
  return Uint8Array.from(
    [...text].flatMap((character) => {
      const code = character <= "\x7f" ? [character.charCodeAt(0)] : codes.get(character);
      if (!code) throw new Error(`${charset} has no ${character}`);
      return code;
    }),
  );
}

function codesOf(charset: string): Map<string, number[]> {
  const decoder = new TextDecoder(charset);
  const codes = new Map<string, number[]>();
  const add = (code: number[]) => {
    const text = decoder.decode(Uint8Array.from(code));
    if ([...text].length === 1 && text > "\x7f" && text !== "\ufffd" && !codes.has(text))
      codes.set(text, code);
  };
  for (let lead = 0x80; lead <= 0xff; lead++) add([lead]);
  if (/^(windows|koi8|ibm|iso)/.test(charset)) return codes;
  for (let lead = 0x81; lead <= 0xfe; lead++)
    for (let trail = 0x40; trail <= 0xfe; trail++) add([lead, trail]);
  return codes;
}
