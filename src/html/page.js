'use strict';
// What all pages share: the data, paths as elements, the address as the state, the treemap and the
// colours. The list of a page is made by its own script, from its data, as far as it is unfolded.
// State: #q=TEXT&under=DIR&class=NAME
const page = {};
{
  const $ = (id) => document.getElementById(id);
  const root = document.documentElement;
  const number = (n) => n.toLocaleString('en');
  const size = (bytes) => {
    const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];
    let unit = 0;
    let value = bytes;
    while (value >= 1000 && unit + 1 < units.length) { value /= 1024; unit += 1; }
    return unit ? value.toFixed(1) + ' ' + units[unit] : number(value) + ' B';
  };
  const counted = (n, one, many) => number(n) + ' ' + (n === 1 ? one : many);

  // An element, its properties and its children; text is text.
  const make = (tag, props, ...children) => {
    const node = document.createElement(tag);
    for (const [key, value] of Object.entries(props || {})) {
      if (key.includes('-')) node.setAttribute(key, value); else node[key] = value;
    }
    node.append(...children);
    return node;
  };

  // A path as in the rest of the page: its directory dimmed, its escapes marked.
  const ESCAPE = /\\(?:[nrt\\]|x([0-9a-f]{2})|u\{([0-9a-f]+)\})/g;
  const marked = (node, text) => {
    let at = 0;
    for (const escape of text.matchAll(ESCAPE)) {
      node.append(text.slice(at, escape.index), make('i', null, escape[0]));
      at = escape.index + escape[0].length;
    }
    node.append(text.slice(at));
  };
  const path = (text) => {
    const node = make('bdi', { className: text.length > 320 ? 'p long' : 'p' });
    const at = text.lastIndexOf('/') + 1;
    if (at > 0) {
      const dir = make('span');
      marked(dir, text.slice(0, at));
      node.append(dir);
    }
    marked(node, text.slice(at));
    return node;
  };
  // The bytes that a shown path stands for.
  const LETTERS = { n: 10, r: 13, t: 9, '\\': 92 };
  const bytes = (text) => {
    const out = [];
    const coder = new TextEncoder();
    let at = 0;
    for (const escape of text.matchAll(ESCAPE)) {
      out.push(...coder.encode(text.slice(at, escape.index)));
      if (escape[1]) out.push(parseInt(escape[1], 16));
      else if (escape[2]) out.push(...coder.encode(String.fromCodePoint(parseInt(escape[2], 16))));
      else out.push(LETTERS[escape[0][1]]);
      at = escape.index + escape[0].length;
    }
    out.push(...coder.encode(text.slice(at)));
    return Uint8Array.from(out);
  };

  // The data of the page: JSON in zlib's format in base64, so that nothing in it is markup.
  const data = async () => {
    const text = atob($('data').textContent);
    const packed = new Uint8Array(text.length);
    for (let i = 0; i < text.length; i += 1) packed[i] = text.charCodeAt(i);
    const unpacking = new DecompressionStream('deflate');
    const writer = unpacking.writable.getWriter();
    const written = writer.write(packed).then(() => writer.close());
    const [json] = await Promise.all([new Response(unpacking.readable).text(), written]);
    return JSON.parse(json);
  };

  const state = () => new URLSearchParams(location.hash.slice(1));
  const listeners = [];
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
    for (const listener of listeners) listener(params);
    for (const { link, key, value } of links) {
      if (params.get(key) === value) link.ariaCurrent = 'true'; else link.ariaCurrent = null;
    }
    paint();
  };
  addEventListener('hashchange', show);
  show();

  Object.assign(page, {
    $, number, size, counted, make, path, bytes, data, state, go, put,
    // Calls a function with the state, now and whenever that changes.
    onState: (listener) => { listeners.push(listener); listener(state()); },
  });
}
