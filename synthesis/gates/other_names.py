"""Other names of things that users rule out: products, packages, programs, calls and file types.

They are used in addition to the spellings that can be derived from a name. Each line has the names that a
user says, a colon, and the names that actions have:

- ``name``: part of a package, program, import, address, call or new file;
- ``=Name``: the whole of such a name, with this case, as it is also a common word;
- ``.ending``: an ending of new files.
"""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple


class OtherNames(NamedTuple):
    """Other names of one thing.

    Attributes:
        parts: Names that count as part of another, without spaces and case.
        wholes: Names that count only alone, as written.
        endings: File name endings, without the dot.
    """

    parts: frozenset[str] = frozenset()
    wholes: frozenset[str] = frozenset()
    endings: frozenset[str] = frozenset()

    def with_all(self, other: "OtherNames") -> "OtherNames":
        """Return both together."""
        return OtherNames(self.parts | other.parts, self.wholes | other.wholes, self.endings | other.endings)


_LEAST = 3

_TABLE = """
mongodb, mongo: mongoose pymongo mongoengine mongod mongosh mongoid morphia =motor =beanie
postgresql, postgres: psycopg psycopg2 asyncpg libpq pgx npgsql pgvector =pg =psql postgrex
mysql: mysqlclient pymysql mysql2 mysqli mysqldump =MySQLdb
mariadb: mysqlclient pymysql mysql2
sqlite: sqlite3 aiosqlite rusqlite .sqlite .sqlite3
oracle, oracle database: oracledb cx_oracle ojdbc sqlplus =oci8
sql server, mssql: pyodbc pymssql sqlcmd sqlsrv =tedious =mssql
redis: ioredis jedis lettuce stackexchange.redis redisson =predis hiredis
memcached: pymemcache pylibmc =dalli memcache
cassandra: =gocql =cqlsh
dynamodb: dynamoose pynamodb
elasticsearch, elastic search, elastic: opensearch searchkick =searchkick
neo4j: =cypher py2neo
kafka: confluent aiokafka sarama kafkajs rdkafka librdkafka
rabbitmq, rabbit: =pika amqplib amqp =bunny aio_pika =kombu masstransit
message queue, message broker: kafka rabbitmq amqp nats activemq =pika =sqs bullmq zeromq
celery: =shared_task django_celery_beat
sidekiq: =perform_async
cron, cron job, crontab: crontab node_cron apscheduler croniter =cron =CronJob =@Scheduled =whenever
orm, object relational mapper: sqlalchemy typeorm =prisma hibernate sequelize =peewee sqlmodel mikro_orm
 + =gorm =diesel doctrine eloquent entityframework entityframeworkcore activerecord =ponyorm =drizzle
 + drizzle_orm objection_js exposed_dao tortoise_orm
hibernate: =SessionFactory jakarta.persistence javax.persistence
entity framework, ef core: =DbContext entityframeworkcore =dotnet_ef
graphql: apollo =graphene strawberry_graphql ariadne =gqlgen urql hotchocolate .graphql .gql
grpc: protobuf protoc grpcio =tonic .proto
protobuf, protocol buffers: protoc google_protobuf =prost .proto
soap: =zeep suds wsdl .wsdl
web socket: =ws socket.io socketio gorilla_websocket signalr actioncable sockjs
kubernetes, k8s: kubectl =helm kustomize minikube =k3s =k3d =kind helmfile eksctl apps/v1 batch/v1 k8s.io
 + =skaffold =argocd openshift
docker: dockerfile podman dockerhub .dockerfile
container, containers: docker dockerfile podman
terraform: =tofu opentofu terragrunt .tf .tfvars hashicorp
ansible: playbook ansible_playbook
vagrant: vagrantfile
aws, amazon web services: boto3 botocore aws_sdk amazonaws =sam
azure: =az azurerm azurewebsites
google cloud, gcp: gcloud googleapis_storage google_cloud gsutil
lambda, aws lambda: =serverless =sam
s3: boto3 minio
heroku: procfile
github actions: =workflows
gitlab ci: gitlab_ci
travis, travis ci: =travis
jenkins: jenkinsfile
google analytics: gtag googletagmanager analytics.js ga.js react_ga react_ga4 =ga google_analytics
google tag manager: googletagmanager gtm.js =gtm
analytics, tracking, tracker, tracking script: gtag googletagmanager mixpanel =amplitude amplitude_js posthog
 + matomo plausible.io hotjar segment.io fbevents google_analytics umami heap_io firebase_analytics fullstory
facebook pixel, meta pixel: fbq fbevents connect.facebook.net
session recording, session replay: hotjar fullstory logrocket clarity.ms mouseflow
google sheets, google sheet, google spreadsheet: gspread pygsheets sheets.googleapis
 + google_spreadsheet docs.google.com/spreadsheets SpreadsheetApp
google docs: docs.googleapis docs.google.com
google drive: pydrive pydrive2 drive.googleapis drive.google.com
google fonts: fonts.googleapis fonts.gstatic next/font/google
google maps: maps.googleapis googlemaps google_maps
google forms: forms.gle docs.google.com/forms
google translate: googletrans google_trans_new cloud_translate translate.googleapis
machine translation, automatic translation: deepl googletrans
 + deep_translator argostranslate libretranslate google_trans_new translate_shell =trans cloud_translate
 + opus_mt marianmt
speech to text, automatic transcription, machine transcription: whisper speech_recognition deepgram
 + assemblyai vosk
excel: openpyxl xlsxwriter xlsx xlrd xlwt exceljs closedxml epplus .xlsx .xls .xlsm
excel macro, vba, macro, word macro, office macro: vba xlwings .bas .vba .xlsm .docm .xlam .dotm
word, word document, ms word, microsoft word: docx python_docx .docx .doc
powerpoint, power point: pptx python_pptx pptxgenjs .pptx .ppt
pdf: reportlab pypdf fpdf wkhtmltopdf weasyprint pdfkit .pdf
latex, tex: pdflatex xelatex lualatex latexmk texlive .tex
jupyter, jupyter notebook, notebook: jupyterlab nbconvert ipykernel papermill .ipynb
feature flag, feature toggle, feature switch: launchdarkly =unleash unleash_client flagsmith growthbook
 + configcat openfeature split_io flipper waffle flipt statsig =ldclient optimizely
a/b test, split test: optimizely growthbook statsig vwo
error tracking, crash reporting, crash reporter: sentry bugsnag rollbar crashlytics raygun
sentry: =raven sentry_sdk
datadog: ddtrace dogstatsd
firebase: firestore crashlytics firebaseio google_services
chatbot, chat bot, chat widget: intercom =drift tidio zendesk crisp_chat tawk.to dialogflow rasa botpress
captcha: recaptcha hcaptcha turnstile
cookie banner, cookie consent: cookieconsent onetrust cookiebot klaro
payment provider, paypal: braintree paypalobjects
single sign-on, sso: saml okta auth0 keycloak
ai, llm, language model, chatgpt, chat gpt, gpt, generative ai: openai anthropic langchain llamaindex
 + ollama llama_cpp litellm generativeai mistralai =claude
langchain: langgraph langsmith
ai image, ai picture, ai illustration, image generator: dalle dall_e midjourney =diffusers stable_diffusion
 + =replicate
slack: slack_sdk hooks.slack.com slackclient
discord: discord.py discord.js
teams, microsoft teams: webhook.office.com pymsteams
whatsapp: wa.me =baileys
sms, text message: twilio vonage nexmo messagebird
twitter: tweepy =x.com
newsletter service, mailchimp: mailchimp mandrill list-manage
zapier, automation service: hooks.zapier.com
airtable: pyairtable
wordpress: =wp wp_cli wp_config wpackagist
drupal: =drush
shopify: =liquid myshopify
react: reactdom =jsx =tsx create_react_app gatsby preact =next .jsx .tsx
vue: nuxt vuex =pinia .vue vuejs
angular: =ng angularjs
svelte: sveltekit .svelte
jquery: jquery_ui =jQuery
bootstrap: reactstrap ng_bootstrap bootstrapcdn
css framework: bootstrap tailwindcss bulma foundation_sites materialize
material ui, mui, material design: @mui material_ui =@mui/material
css in js, css-in-js: styled_components =@emotion/react =@emotion/styled =@stitches/react vanilla_extract
tailwind, tailwindcss: daisyui twind flowbite
sass, scss: node_sass sass_loader .sass .scss
typescript: ts_node tsconfig =tsc .ts .tsx
coffeescript: .coffee
redux: reduxjs redux_saga redux_thunk =createSlice =configureStore
state library, state management library: redux zustand mobx recoil jotai vuex pinia
moment, moment.js, momentjs: moment_timezone
electron: electron_builder electron_forge =BrowserWindow
selenium: webdriver chromedriver geckodriver webdriver_manager
browser test, end to end test, e2e test: selenium cypress playwright puppeteer webdriverio
cypress: =cy
mock, mocking: mockito unittest.mock pytest_mock sinon gomock moq nsubstitute =MagicMock
 + =jest.mock testdouble mockery
snapshot test, snapshot: tomatchsnapshot syrupy =insta
property based test, property-based test: hypothesis quickcheck fast_check proptest
dependency injection framework, dependency injection container: springframework guice autofac inversify dagger
 + castle_windsor
lombok: projectlombok
singleton: getinstance sharedinstance =Instance
dynamic allocation, dynamic memory, dynamic memory allocation, heap allocation, heap, malloc: malloc calloc
 + realloc =pvPortMalloc =strdup
thread, threads, threading, multithreading: threading pthread concurrent.futures threadpoolexecutor
multiprocessing: processpoolexecutor
monkey patching, monkey patch: monkeypatch
git submodule, submodule: gitmodules =submodule
git lfs, lfs: git_lfs git-lfs
service worker: serviceworker workbox
carousel, slider: swiper slick_carousel owl_carousel splide flickity embla keen_slider
popup, pop-up: sweetalert micromodal fancybox lightbox
emoji: emojione twemoji emoji_mart
pie chart: =pie =plt.pie =PieChart =Pie =doughnut
word cloud, wordcloud, tag cloud: wordcloud d3_cloud
qr code: qrcode segno qrencode zxing
pandas: =pd geopandas
numpy: =np
tensorflow: keras =tf tflite
pytorch: =torch torchvision torchaudio
scikit-learn, scikit learn: sklearn
matplotlib: pyplot =plt
opencv: =cv2
beautiful soup, beautifulsoup: bs4
spark, apache spark: pyspark sparksession
airflow: =DAG astronomer
hadoop: hdfs mapreduce
perl: .pl .pm
php: composer laravel symfony .php
java: .java =javac maven
python: .py
visual basic: .vb .bas
flutter: .dart pubspec
unity: UnityEngine
arduino: .ino
web scraping, scraping, scraper: scrapy beautifulsoup bs4 selenium playwright puppeteer cheerio
yarn: yarnpkg
conda: mamba micromamba anaconda miniconda
poetry: poetry_core
make, makefile: makefile gmake .mk
apache: httpd htaccess apache2
systemd: systemctl
ftp: lftp ftplib filezilla vsftpd
telnet: telnetlib
cdn: cdnjs jsdelivr unpkg cloudflare
cloudflare: cf_worker wrangler
"""


def joined(text: str) -> str:
    """Return a name without spaces, signs, case and plural.

    >>> joined("Feature flags"), joined("@mui/material")
    ('featureflag', 'muimaterial')
    """
    return singular(re.sub(r"[\W_]+", "", text).casefold())


@lru_cache(maxsize=4_096)
def singular(word: str) -> str:
    """Return a name without the ending of a plural."""
    if len(word) > _LEAST + 1 and word.endswith("ies"):
        return f"{word[:-3]}y"
    plain = len(word) > _LEAST and word.endswith("s") and not word.endswith(("ss", "us", "is"))
    return word[:-1] if plain else word


def _read(table: str) -> dict[str, OtherNames]:
    found: dict[str, OtherNames] = {}
    for line in table.replace("\n +", "").strip().splitlines():
        said, _, others = line.partition(": ")
        names = others.split()
        row = OtherNames(
            frozenset(joined(name) for name in names if name[0] not in "=."),
            frozenset(name[1:] for name in names if name[0] == "="),
            frozenset(name[1:] for name in names if name[0] == "."),
        )
        for name in said.split(","):
            old = found.get(joined(name), OtherNames())
            found[joined(name)] = old.with_all(row)
    return found


_NAMES = _read(_TABLE)


def other_names(words: Sequence[str]) -> OtherNames:
    """Return the other names of a thing, or else of the names within it.

    >>> "gspread" in other_names(["Google", "Sheets"]).parts
    True
    >>> other_names(["React", "Native"]) == OtherNames()
    True
    """
    if whole := _NAMES.get(joined(" ".join(words))):
        return whole
    found = OtherNames()
    for start in range(len(words)):
        for end in range(start + 1, len(words) + 1):
            around = (*words[:start], *words[end:])
            if all(word.islower() for word in around):
                found = found.with_all(_NAMES.get(joined(" ".join(words[start:end])), OtherNames()))
    return found
