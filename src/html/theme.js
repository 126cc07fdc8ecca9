'use strict';
// The colours chosen by hand: #theme=dark in the address, or as last time.
{
  let theme = new URLSearchParams(location.hash.slice(1)).get('theme');
  try { theme = theme || localStorage.getItem('bc-theme'); } catch { /* no storage for files */ }
  if (theme === 'light' || theme === 'dark') document.documentElement.dataset.theme = theme;
}
