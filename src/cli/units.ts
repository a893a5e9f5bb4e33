/** Formats bytes for users with up to three digits: `1.4 GB`. */
export function bytesText(bytes: number): string {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let value = bytes;
  let unit = 0;
  while (value >= 999.5 && unit < units.length - 1) {
    value /= 1000;
    unit++;
  }
  return `${unit === 0 || value >= 99.95 ? value.toFixed(0) : value.toFixed(1)} ${units[unit]}`;
}

/** Formats bytes per second as a bit rate: `8.0 Mbit/s`. */
export function bitsText(bytesPerSecond: number): string {
  const bits = 8 * bytesPerSecond;
  if (bits < 999_500) return `${Math.round(bits / 1e3)} kbit/s`;
  return `${(bits / 1e6).toFixed(bits < 99.95e6 ? 1 : 0)} Mbit/s`;
}

/** Parses `8Mbit`, `2500kbit/s`, `1.5M`, `8000000` (bits) or `1MB` (bytes) as bits per second. Returns undefined for other texts. */
export function parseBitRate(text: string): number | undefined {
  const match = /^(\d{1,12}(?:\.\d{1,6})?) ?([kMG]?)(?:(bit|bps|b|B)?(?:\/s|ps)?)$/i.exec(text.trim());
  if (match === null) return undefined;
  const per = { "": 1, k: 1e3, m: 1e6, g: 1e9 }[match[2]!.toLowerCase()]!;
  const bits = Math.round(Number(match[1]) * per * (match[3] === "B" ? 8 : 1));
  return Number.isSafeInteger(bits) && bits > 0 ? bits : undefined;
}

/** Formats seconds for users: `1:02:03`, `2:03`; `–` if unknown. */
export function secondsText(seconds: number): string {
  if (!Number.isFinite(seconds) || seconds > 99 * 3600) return "–";
  const whole = Math.ceil(seconds);
  const two = (value: number) => String(value).padStart(2, "0");
  const hours = Math.floor(whole / 3600);
  const minutes = Math.floor(whole / 60) % 60;
  return hours > 0 ? `${hours}:${two(minutes)}:${two(whole % 60)}` : `${minutes}:${two(whole % 60)}`;
}
