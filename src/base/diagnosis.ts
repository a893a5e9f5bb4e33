/** Severity of a finding: as expected, informational, a likely problem, broken. */
type DiagnosisLevel = "ok" | "note" | "warn" | "fail";

/** One finding of a diagnosis. */
export interface DiagnosisRow {
  /** Short label, such as `Port`. */
  readonly name: string;
  readonly level: DiagnosisLevel;
  /** The finding, one sentence. */
  readonly text: string;
  /** What the user can do about it. */
  readonly advice?: string;
}
