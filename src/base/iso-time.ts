const DAY_MS = 86_400_000;
/** Days from 0000-03-01 to 1970-01-01. The calendar repeats every 400 years. */
const DAYS_BEFORE_1970 = 719_468;
const DAYS_IN_400_YEARS = 146_097;
const DAYS_IN_100_YEARS = 36_524;
const DAYS_IN_4_YEARS = 1461;
/** Years start in March here, so a leap day is the last day of its year. From March on, each run of five months has this many
 * days. */
const DAYS_IN_5_MONTHS = 153;

/** Formats a time as ISO 8601 in UTC with milliseconds. Pure code has no `Date`.
 * @param unixMs UNIX milliseconds, up to the year 9999. */
export function isoTime(unixMs: number): string {
  const wholeMs = Math.floor(unixMs);
  const days = Math.floor(wholeMs / DAY_MS);
  const ms = wholeMs - days * DAY_MS;
  const clock = [digits(ms / 3_600_000), digits((ms / 60_000) % 60), digits((ms / 1000) % 60)].join(":");
  return `${date(days + DAYS_BEFORE_1970)}T${clock}.${digits(ms % 1000, 3)}Z`;
}

/** Formats the date that is `days` days after 0000-03-01. */
function date(days: number): string {
  const era = Math.floor(days / DAYS_IN_400_YEARS);
  const day = days - era * DAYS_IN_400_YEARS;
  const leapDays =
    Math.floor(day / (DAYS_IN_4_YEARS - 1)) -
    Math.floor(day / DAYS_IN_100_YEARS) +
    Math.floor(day / (DAYS_IN_400_YEARS - 1));
  const year = Math.floor((day - leapDays) / 365);
  const dayOfYear = day - (365 * year + Math.floor(year / 4) - Math.floor(year / 100));
  const month = Math.floor((5 * dayOfYear + 2) / DAYS_IN_5_MONTHS);
  const dayOfMonth = dayOfYear - Math.floor((DAYS_IN_5_MONTHS * month + 2) / 5) + 1;
  const isNextYear = month >= 10;
  return [
    digits(era * 400 + year + (isNextYear ? 1 : 0), 4),
    digits(isNextYear ? month - 9 : month + 3),
    digits(dayOfMonth),
  ].join("-");
}

function digits(value: number, count = 2): string {
  return String(Math.floor(value)).padStart(count, "0");
}
