/** Options of Chromium in tests: no background traffic, no sandbox, autoplay allowed. */
export const LAUNCH = {
  executablePath: "/usr/bin/chromium",
  headless: true,
  args: [
    ...["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"],
    ...["--disable-background-networking", "--disable-component-update"],
    "--autoplay-policy=no-user-gesture-required",
  ],
};
