/** A metric with its samples (Prometheus text format 0.0.4). */
export interface MetricFamily {
  /** Ends with the unit, and with `_total` if it is a counter: `sluice_upload_bytes_total`. */
  readonly name: string;
  readonly kind: "gauge" | "counter";
  /** One sentence, without line breaks. */
  readonly help: string;
  readonly samples: readonly MetricSample[];
}

/** One value of a metric; labels tell the values of a metric apart. */
export interface MetricSample {
  readonly labels?: Readonly<Record<string, string>>;
  readonly value: number;
}

/** Writes metrics as Prometheus reads them (text format 0.0.4). A metric without samples is omitted. */
export function metricsText(families: readonly MetricFamily[]): string {
  return families
    .filter(({ samples }) => samples.length > 0)
    .map(({ name, kind, help, samples }) =>
      [
        `# HELP ${name} ${help.replaceAll("\\", "\\\\").replaceAll("\n", "\\n")}\n`,
        `# TYPE ${name} ${kind}\n`,
        ...samples.map(({ labels, value }) => `${name}${labelText(labels)} ${valueText(value)}\n`),
      ].join(""),
    )
    .join("");
}

function labelText(labels: MetricSample["labels"]): string {
  const pairs = Object.entries(labels ?? {}).map(
    ([name, value]) =>
      `${name}="${value.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n")}"`,
  );
  return pairs.length === 0 ? "" : `{${pairs.join(",")}}`;
}

function valueText(value: number): string {
  if (Number.isNaN(value)) return "NaN";
  if (!Number.isFinite(value)) return value > 0 ? "+Inf" : "-Inf";
  return String(value);
}
