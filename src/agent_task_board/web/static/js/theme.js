// A classic script in the head applies the stored theme before the first paint. A module would run too late.
try {
  const theme = localStorage.getItem("atb-theme");
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
} catch {
  // Without storage, the page follows the system theme.
}
