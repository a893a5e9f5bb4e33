/** The result of {@link checkTs}. `faults` is empty for a valid stream. */
export interface TsReport {
  readonly faults: string[];
  readonly packets: number;
  /** PES packets by PID. */
  readonly units: Map<number, number>;
  readonly keyframes: number;
  /** Longest distance of two PCRs, in 90 kHz ticks. */
  readonly clockGapTicks: number;
}

export interface TsCheckOptions {
  /** Each PID must begin with continuity counter 0 and end with 15, so that segments can be joined. */
  readonly isSegment?: boolean;
  /** True for a stream that is passed through: its PCR and tables are not checked. */
  readonly isPassThrough?: boolean;
}

/**
 * Checks a transport stream without code of the implementation: sync, continuity, PAT and PMT first, a PCR at least every 100 ms and
 * increasing, decode times strictly increasing on each PID, never after the presentation time, never before the PCR.
 */
export function checkTs(ts: Uint8Array, options: TsCheckOptions = {}): TsReport {
  const view = new DataView(ts.buffer, ts.byteOffset, ts.byteLength);
  const faults: string[] = [];
  const counters = new Map<number, number>();
  const units = new Map<number, number>();
  const lastDts = new Map<number, number>();
  const order: number[] = [];
  let keyframes = 0;
  let clock: number | undefined;
  let clockGapTicks = 0;
  const fault = (at: number, text: string) => {
    if (faults.length < 20) faults.push(`packet ${at / 188}: ${text}`);
  };
  const wrapped = (to: number, from: number) => {
    const delta = (((to - from) % 2 ** 33) + 2 ** 33) % 2 ** 33;
    return delta >= 2 ** 32 ? delta - 2 ** 33 : delta;
  };
  const time = (at: number) =>
    ((view.getUint8(at) >> 1) & 7) * 2 ** 30 +
    (view.getUint16(at + 1) >> 1) * 2 ** 15 +
    (view.getUint16(at + 3) >> 1);
  if (ts.length % 188 !== 0) faults.push(`${ts.length} bytes are no whole packets`);
  for (let at = 0; at + 188 <= ts.length; at += 188) {
    if (ts[at] !== 0x47) {
      fault(at, "no sync byte");
      continue;
    }
    const pid = view.getUint16(at + 1) & 0x1fff;
    const control = ts[at + 3]!;
    if (order.length < 2) order.push(pid);
    if (pid === 0x1fff) continue;
    const hasPayload = (control & 0x10) !== 0;
    const adaptation = control & 0x20 ? ts[at + 4]! : -1;
    const flags = adaptation > 0 ? ts[at + 5]! : 0;
    const before = counters.get(pid);
    if (before === undefined && options.isSegment && (control & 15) !== (hasPayload ? 0 : 15)) {
      fault(at, `PID ${pid} begins with counter ${control & 15}`);
    }
    const expected = ((before ?? 0) + (hasPayload ? 1 : 0)) & 15;
    if (before !== undefined && !(flags & 0x80) && (control & 15) !== expected) {
      fault(at, `PID ${pid}: counter ${control & 15}, expected ${expected}`);
    }
    counters.set(pid, control & 15);
    if (adaptation > 183 || (hasPayload && adaptation > 182)) fault(at, `adaptation field of ${adaptation}`);
    if (flags & 0x10) {
      const now = view.getUint32(at + 6) * 2 + (ts[at + 10]! >> 7);
      const gap = clock === undefined ? 0 : wrapped(now, clock);
      if (gap < 0) fault(at, `the clock runs back by ${-gap}`);
      clockGapTicks = Math.max(clockGapTicks, gap);
      clock = now;
    }
    if (!(ts[at + 1]! & 0x40) || !hasPayload) continue;
    const body = at + 5 + adaptation;
    if (view.getUint32(body) >>> 8 !== 1) continue;
    units.set(pid, (units.get(pid) ?? 0) + 1);
    const isVideo = (ts[body + 3]! & 0xf0) === 0xe0;
    if (isVideo && flags & 0x40) keyframes++;
    const has = ts[body + 7]! >> 6;
    if (has < 2) continue;
    const pts = time(body + 9);
    const dts = has === 3 ? time(body + 14) : pts;
    const previous = lastDts.get(pid);
    if (previous !== undefined && wrapped(dts, previous) <= 0)
      fault(at, `PID ${pid}: DTS ${dts} after ${previous}`);
    lastDts.set(pid, dts);
    if (wrapped(pts, dts) < 0) fault(at, `PID ${pid}: PTS ${pts} before DTS ${dts}`);
    if (clock !== undefined && wrapped(dts, clock) < 0 && !options.isPassThrough)
      fault(at, `PID ${pid}: DTS before the clock`);
  }
  if (order[0] !== 0) faults.push(`begins with PID ${order[0]}, not with the PAT`);
  if (options.isSegment) {
    for (const [pid, counter] of counters)
      if (counter !== 15) faults.push(`PID ${pid} ends with counter ${counter}`);
  }
  if (!options.isPassThrough && clockGapTicks > 9000) faults.push(`${clockGapTicks} ticks without a clock`);
  return { faults, packets: ts.length / 188, units, keyframes, clockGapTicks };
}
