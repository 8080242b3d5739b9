// A classic script in the head: a stored theme holds before the first paint. Modules would come too late.
try {
  const theme = localStorage.getItem("atb-theme");
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
} catch {
  // Without storage the page follows the system.
}
