'use strict';
// Sorts and filters the table, moves about in the treemap, changes the
// colours. All state is in the address: #sort=size&order=asc&q=TEXT&under=DIR.
{
  const $ = (id) => document.getElementById(id);
  const root = document.documentElement;
  const body = $('list')?.tBodies[0];
  const rows = body ? [...body.rows].map((row, index) => {
    const paths = [...row.querySelectorAll('.files .p, td > .p')].map((p) => p.textContent);
    const text = row.querySelector('.files') ? paths.join('\n') : row.textContent;
    return { row, index, paths, text: text.toLowerCase(), kind: row.dataset.class };
  }) : [];
  const number = (n) => n.toLocaleString('en');
  const state = () => new URLSearchParams(location.hash.slice(1));

  const go = (params) => {
    const hash = '#' + params.toString().replaceAll('%2F', '/');
    try {
      history.replaceState(null, '', hash);
      show();
    } catch {
      location.hash = hash; // hashchange shows it
    }
  };
  const put = (key, value) => {
    const params = state();
    if (value) params.set(key, value); else params.delete(key);
    return params;
  };

  // Sorting.
  const buttons = [...document.querySelectorAll('#list th button')];
  const keys = buttons.map((b) => b.dataset.sort);
  const heads = buttons.map((b) => b.parentElement);
  const initial = heads.findIndex((th) => th.ariaSort);
  const orderOf = (th) => (th?.ariaSort === 'ascending' ? 'asc' : 'desc');
  const first = orderOf(heads[initial]);
  let sorted = initial + first;
  const naturally = (button) => (button.dataset.by === 'number' ? 'desc' : 'asc');
  const sort = (params) => {
    let at = keys.indexOf(params.get('sort'));
    if (at < 0) at = initial;
    if (at < 0) return;
    const button = buttons[at];
    const order = params.get('order') || (at === initial ? first : naturally(button));
    const wanted = at + order;
    if (wanted === sorted) return;
    sorted = wanted;
    const column = heads[at].cellIndex;
    const sign = order === 'asc' ? 1 : -1;
    const key = button.dataset.by === 'number'
      ? (r) => Number(r.row.cells[column].dataset.v)
      : (r) => r.row.cells[column].querySelector('.p')?.textContent ?? r.row.cells[column].textContent;
    for (const r of rows) r.key = key(r);
    rows.sort((a, b) => (a.key < b.key ? -sign : a.key > b.key ? sign : a.index - b.index));
    body.append(...rows.map((r) => r.row));
    heads.forEach((th, i) => { th.ariaSort = i === at ? (sign > 0 ? 'ascending' : 'descending') : null; });
  };
  buttons.forEach((button, i) => {
    button.disabled = false;
    button.addEventListener('click', () => {
      const params = put('sort', keys[i]);
      const turned = orderOf(heads[i]) === 'asc' ? 'desc' : 'asc';
      params.set('order', heads[i].ariaSort ? turned : naturally(button));
      go(params);
    });
  });

  // Filtering.
  const parent = (path) => {
    const at = path.lastIndexOf('/');
    return at < 0 ? '' : at === 0 ? '/' : path.slice(0, at);
  };
  const filter = (params) => {
    const words = (params.get('q') || '').toLowerCase().split(' ').filter(Boolean);
    const under = params.get('under');
    const within = params.get('in');
    const kind = params.get('class');
    const start = under && (under.endsWith('/') ? under : under + '/');
    let left = 0;
    for (const r of rows) {
      const here = words.every((word) => r.text.includes(word))
        && (!kind || r.kind === kind)
        && (!under || r.paths.some((p) => p === under || p.startsWith(start)))
        && (within === null || r.paths.some((p) => parent(p) === within));
      r.row.hidden = !here;
      left += here;
    }
    const place = within === null ? under : within;
    $('place').hidden = !place && within === null && !kind;
    $('place').textContent = [kind, (place || within !== null) && ('in ' + (place || '.'))].filter(Boolean).join(', ') + ' \u00d7';
    $('status').textContent = left === rows.length ? '' : number(left) + ' of ' + number(rows.length) + ' listed rows';
    $('none').hidden = left > 0 || rows.length === 0;
    if ($('filter') !== document.activeElement) $('filter').value = params.get('q') || '';
  };
  if (body) {
    $('bar').hidden = rows.length < 2;
    $('filter').addEventListener('input', () => go(put('q', $('filter').value)));
    $('filter').addEventListener('keydown', (event) => {
      if (event.key === 'Escape') { $('filter').value = ''; go(put('q', '')); }
    });
    $('place').title = 'Show all rows again';
    $('place').addEventListener('click', () => {
      const params = state();
      for (const key of ['under', 'in', 'class']) params.delete(key);
      go(params);
      $('filter').focus();
    });
  }

  // Links that filter: pressed once, on; again, off. They leave the rest as it is.
  const links = [...document.querySelectorAll('a[href^="#"]')].map((link) => {
    const [key, value] = [...new URLSearchParams(link.getAttribute('href').slice(1))][0] || [];
    return { link, key, value };
  });
  for (const { link, key, value } of links) {
    link.addEventListener('click', (event) => {
      event.preventDefault();
      const params = state();
      const on = params.get(key) === value;
      for (const other of key === 'class' ? ['class'] : ['under', 'in']) params.delete(other);
      if (!on) params.set(key, value);
      go(params);
    });
  }

  // The treemap: one stop of the Tab key, arrows inside.
  const cells = [...document.querySelectorAll('#map .c')];
  const center = (cell) => {
    const r = cell.getBoundingClientRect();
    return [r.left + r.width / 2, r.top + r.height / 2];
  };
  const nearest = (from, dx, dy) => {
    const [x, y] = center(from);
    let best = null;
    let least = Infinity;
    for (const cell of cells) {
      const [cx, cy] = center(cell);
      const ahead = (cx - x) * dx + (cy - y) * dy;
      const aside = Math.abs((cx - x) * dy) + Math.abs((cy - y) * dx);
      if (ahead > 1 && ahead + 2 * aside < least) { best = cell; least = ahead + 2 * aside; }
    }
    return best;
  };
  const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
  const tell = (cell) => { $('map-info').textContent = cell.title; };
  cells.forEach((cell, i) => {
    cell.tabIndex = i === 0 ? 0 : -1;
    cell.addEventListener('focus', () => {
      for (const other of cells) other.tabIndex = -1;
      cell.tabIndex = 0;
      tell(cell);
    });
    cell.addEventListener('mouseenter', () => tell(cell));
    cell.addEventListener('keydown', (event) => {
      const to = event.key === 'Home' ? cells[0] : event.key === 'End' ? cells.at(-1)
        : event.key === ' ' ? cell : ARROWS[event.key] && nearest(cell, ...ARROWS[event.key]);
      if (!to) return;
      event.preventDefault();
      if (to === cell) cell.click(); else to.focus();
    });
  });

  // Colours: as the system has them, or the other way.
  const theme = $('theme');
  const dark = matchMedia('(prefers-color-scheme: dark)');
  const bar = document.createElement('meta');
  bar.name = 'theme-color';
  document.head.append(bar);
  const isDark = () => (root.dataset.theme ? root.dataset.theme === 'dark' : dark.matches);
  const paint = () => {
    theme.textContent = isDark() ? 'Light colours' : 'Dark colours';
    bar.content = getComputedStyle(document.body).backgroundColor;
  };
  theme.hidden = false;
  theme.addEventListener('click', () => {
    const next = isDark() ? 'light' : 'dark';
    root.dataset.theme = next;
    try { localStorage.setItem('bc-theme', next); } catch { /* no storage for files */ }
    if (state().has('theme')) go(put('theme', next));
    paint();
  });
  dark.addEventListener('change', paint);

  const show = () => {
    const params = state();
    if (['light', 'dark'].includes(params.get('theme'))) root.dataset.theme = params.get('theme');
    if (body) { sort(params); filter(params); }
    for (const { link, key, value } of links) {
      if (params.get(key) === value) link.ariaCurrent = 'true'; else link.ariaCurrent = null;
    }
    paint();
  };
  addEventListener('hashchange', show);
  show();

  // On paper nothing can be unfolded: print all names.
  let folded = [];
  addEventListener('beforeprint', () => {
    folded = [...document.querySelectorAll('.files details:not([open])')];
    for (const d of folded) d.open = true;
  });
  addEventListener('afterprint', () => { for (const d of folded) d.open = false; });
}
