// Copyright 2026 The state_sensor_ros maintainers
// SPDX-License-Identifier: Apache-2.0
//
// A browser and a plotly that show nothing: runs the player of an animation and prints after each
// action what it has put on the map. Input and output are JSON; see test_animation.py.
'use strict';
const { player, data, actions } = JSON.parse(require('fs').readFileSync(0, 'utf8'));

let wall = 0;
let pending = null;
const documentListeners = {};

const makeElement = (id) => ({
  id, hidden: false, style: {}, listeners: {}, clientWidth: 1000, clientHeight: 500, tagName: 'DIV', value: '',
  textContent: id === 'data' ? JSON.stringify(data) : '',
  addEventListener(name, listener) { this.listeners[name] = listener; },
  on(name, listener) { this.listeners[name] = listener; },
  getBoundingClientRect: () => ({ left: 0, top: 0 }),
});
const elements = {};
globalThis.document = {
  getElementById: (id) => (elements[id] ||= makeElement(id)),
  // Six pixels a letter.
  createElement: () => ({
    getContext: () => ({ measureText: (text) => ({ width: 6 * text.length }) }),
  }),
  addEventListener: (name, listener) => { documentListeners[name] = listener; },
};
const windowListeners = {};
globalThis.window = {
  innerWidth: 1000,
  addEventListener: (name, listener) => { windowListeners[name] = listener; },
};
// Timers of the player run when the wall clock of an action has passed them.
const timers = [];
const realTimeout = setTimeout;
globalThis.setTimeout = (callback, delay) => { timers.push([wall + delay, callback]); };
globalThis.performance = { now: () => wall };
// Observes the sizes of elements, once: they do not change.
globalThis.ResizeObserver = class {
  constructor(callback) { this.callback = callback; }
  observe(target) { this.callback([{ target }]); }
};
globalThis.requestAnimationFrame = (callback) => { pending = callback; };
document.getElementById('pace').value = '1';

const setRanges = (figure, layout) => {
  for (const axis of ['xaxis', 'yaxis']) {
    if (layout[`${axis}.range`]) figure.layout[axis].range = layout[`${axis}.range`];
  }
};
globalThis.Plotly = {
  newPlot: async (figure, traces, layout) => { Object.assign(figure, { data: traces, layout }); },
  relayout: async (figure, layout) => {
    Object.assign(figure.layout, { width: layout.width, height: layout.height });
    setRanges(figure, layout);
  },
  update: async (figure, traces, layout, indices) => {
    indices.forEach((index, i) => {
      for (const name of ['x', 'y', 'text', 'marker', 'textposition']) {
        if (traces[name][i] !== undefined) figure.data[index][name] = traces[name][i];
      }
    });
    setRanges(figure, layout);
  },
};

const timersDone = () => new Promise((resolve) => { realTimeout(resolve, 0); });

const state = () => {
  const { map } = elements;
  const filled = [...data.parts.classes, data.parts.fronts, data.parts.points];
  const part = (name) => map.data[data.parts[name]];
  const points = map.data[data.parts.points];
  return {
    x: filled.map((index) => map.data[index].x), y: filled.map((index) => map.data[index].y),
    points: points.x.map((x, i) => [x, points.y[i]]), text: points.text,
    clock: elements.clock.value, button: elements.play.textContent,
    xRange: map.layout.xaxis.range, yRange: map.layout.yaxis.range, marker: points.marker,
    labels: part('labels').text || [], positions: part('labels').textposition || [],
    places: (part('labels').x || []).map((x, i) => [x, part('labels').y[i]]), outlines: part('outlines').x, assumed: part('assumed').x,
    changes: { ...part('changes') }, lines: elements.strip.data.at(-1),
    sizes: [map, elements.strip].map(({ layout }) => [layout.width, layout.height]),
  };
};

const act = async (action) => {
  const [verb, word] = String(action).split(' ');
  if (verb === 'play' || verb === 'pause') elements.play.listeners.click();
  else if (verb === 'pace') elements.pace.value = word;
  else if (verb === 'key') {
    documentListeners.keydown({ key: word, target: elements.map, preventDefault() {} });
  } else if (verb === 'unfollow') {
    elements.follow.checked = false;
    elements.follow.listeners.change();
  } else if (verb === 'names' || verb === 'nameless') {
    elements.names.checked = verb === 'names';
    elements.names.listeners.change();
  } else if (verb === 'zoom') {
    const numbers = word === 'home'
      ? [...data.map.layout.xaxis.range, ...data.map.layout.yaxis.range]
      : String(action).split(' ').slice(1).map(Number);
    elements.map.layout.xaxis.range = numbers.slice(0, 2);
    elements.map.layout.yaxis.range = numbers.slice(2);
    elements.map.listeners.plotly_relayout({ 'xaxis.range[0]': numbers[0] });
  } else if (verb === 'press') elements.map.listeners.pointerdown();
  else if (verb === 'release') windowListeners.pointerup();
  else if (verb === 'wait') {
    wall += Number(word);
    for (const [at, callback] of timers.splice(0)) if (at <= wall) callback();
  } else if (verb === 'tick') {
    wall += Number(word);
    const callback = pending;
    pending = null;
    if (callback) callback(wall);
  } else {
    elements.time.value = verb;
    elements.time.listeners.input();
  }
  await timersDone();
};

(async () => {
  // The player runs in this page's own scope, as a script of it does.
  (0, eval)(player);
  await timersDone();
  const states = [];
  for (const action of actions) {
    await act(action);
    states.push(state());
  }
  process.stdout.write(JSON.stringify(states));
})();
