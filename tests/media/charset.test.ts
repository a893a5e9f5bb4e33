import assert from "node:assert/strict";
import { test } from "node:test";
import { charsetDecoder, charsetSample, detectCharset } from "../../src/media/charset.ts";
import { encodeCharset } from "./encode-charset.ts";

/** Channel names by language, and the character sets in which lists contain them. */
const NAMES: readonly (readonly [charsets: string, names: string])[] = [
  [
    "windows-1251 koi8-r ibm866",
    "Первый канал,Россия 1,НТВ,ТНТ,Рен ТВ,Пятый канал,Звезда HD,Матч! Футбол 1,Домашний,СТС,Карусель,Мир 24",
  ],
  ["windows-1251 koi8-r ibm866", "Новости,Спорт"],
  ["windows-1251 koi8-r ibm866", "РОССИЯ К,ПЕРВЫЙ КАНАЛ,КИНО,СПОРТ,НОВОСТИ,МУЗЫКА"],
  ["windows-1251 koi8-u", "Перший національний,Інтер,ТЕТ,Новий канал,Еспресо,Дніпро,Їжа"],
  ["windows-1251", "БНТ 1,Нова телевизия,Диема,Планета Фолк,Българска национална телевизия"],
  ["windows-1251", "РТС 1,Прва,Пинк,Хепи,Студио Б,Међународни програм,Спортски канал"],
  ["windows-1252", "Télé Toulouse,France 2 Régions,Canal+ Cinéma,Série Club,Paris Première"],
  ["windows-1252", "Canal Español,Televisión Pública,Niños,Cataluña,Fútbol"],
  ["windows-1252", "ProSieben Österreich,Kärnten TV,Süd,Großes Kino,RTL Zwei Köln"],
  ["windows-1252", "TV 2 Fri Sport,Børn,Rødovre,Århus,Færøerne,Kanal Østjylland"],
  ["windows-1252", "Televisão Brasil,Notícias,São Paulo,Futebol Português,Ação"],
  ["windows-1250", "Česká televize,Šport,Nova Žluťoučký kůň,Óčko,Zpravodajství,Dětský pořad"],
  ["windows-1250", "Telewizja Śląsk,Łódź,Wiadomości,Młodzieżowe,Gdańsk,Kraków,Bajki dla dzieci żółw"],
  ["windows-1250", "Magyar Televízió,Hírek,Műsor,Első csatorna,Főzés,Időjárás,Győr"],
  ["windows-1250", "Televiziunea Română,Ştiri,Bucureşti,Naţional TV,Muzică"],
  ["windows-1250", "Hrvatska radiotelevizija,Slovenija 1,Šport,Žurnal,Dječji kanal,Večernji,Kuća"],
  ["windows-1254", "Türkiye,Kanal Dünya,Çocuk,Şarkılar,Haber Türk,Müzik Kanalı,İstanbul,Doğu"],
  ["windows-1253", "ΕΡΤ Ειδήσεις,Μακεδονία TV,Ελλάδα,Αθήνα,Κρήτη,Βουλή,Παιδικά"],
  ["windows-1257", "Lietuvos rytas,Žinios,Šiauliai,Vaikų kanalas,Mūsų žmonės,Naujienų"],
  ["windows-1255", "ערוץ ראשון,חדשות,ספורט,ילדים"],
  ["windows-1256", "الجزيرة,العربية,قناة الأخبار,رياضة,أطفال"],
  ["windows-874", "ช่องสาม,ข่าว,กีฬา,ภาพยนตร์,เด็ก"],
  ["shift_jis euc-jp", "NHK総合,テレビ朝日,フジテレビ,日本テレビ,スポーツ,アニメ,ニュース,東京"],
  ["gb18030", "中央电视台,湖南卫视,浙江卫视,东方卫视,新闻频道,北京卫视,体育,电影"],
  ["gb18030", "CCTV-1综合,CCTV-5体育"],
  ["big5", "台灣電視,中天新聞,民視,公共電視,體育台,電影,東森新聞"],
  ["euc-kr", "한국방송,문화방송,뉴스,스포츠,영화,어린이,서울"],
];

for (const [charsets, names] of NAMES) {
  for (const charset of charsets.split(" ")) {
    test(`detectCharset: ${charset}, ${names.slice(0, 20)}`, () => {
      const text = names
        .split(",")
        .map((name) => `#EXTINF:-1 tvg-id="x" group-title="TV",${name}\nhttp://h.example/a?b=c`)
        .join("\n");
      const bytes = encodeCharset(text, charset);
      assert.equal(charsetDecoder(detectCharset(charsetSample(bytes)))(bytes), text);
    });
  }
}
